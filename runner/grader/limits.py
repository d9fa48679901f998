"""The grading contract's numbers, each written once."""

from runner.protocol import GRADING_LIMIT_SEC

GRADER_VERSION = "1"

CORRECTNESS_DRAWS = 5
WARMUP_DRAWS = 10
TIMED_DRAWS = 50
ANCHOR_RECHECKS = 3
ALLOWANCE_FACTOR = 3.0

# Null calls that measure what a round trip to the child costs, before the kernel is loaded.
CALIBRATION_CALLS = 25
# The child's clock stands while the parent's shows at most this many times its median, plus a
# slack: twice the interquartile range of the calibration calls, plus a share of their median
# (other work on a CPU host makes every switch dearer), plus the floor.
CLOCK_RATIO = 1.25
CLOCK_FLOOR_NS = 20_000
CLOCK_OVERHEAD_SHARE = {"cpu": 0.5, "cuda": 0.05}

LIMIT_SEC = float(GRADING_LIMIT_SEC)
START_LIMIT_SEC = 120.0
WATCH_INTERVAL_SEC = 0.05
EXIT_WAIT_SEC = 5.0

# The protocol gives an attempt 8 GB; a CUDA process also keeps its driver's host memory.
HOST_MEMORY_BYTES = {"cpu": 8 << 30, "cuda": 32 << 30}
FILE_LIMIT_BYTES = 1 << 30
SCRATCH_LIMIT_BYTES = 1 << 30
PROCESS_LIMIT = 512

LOG_TAIL_BYTES = 4_000

# Comparisons run over this many elements at a time: float64 copies of a whole output would
# not fit beside the largest problems.
CHUNK_ELEMENTS = 1 << 25
