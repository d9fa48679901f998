# Grading host: one kernel at a time on its device; no database, no vendor's key, no network but the broker's.
FROM nvidia/cuda:13.0.1-devel-ubuntu24.04
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap python3-venv util-linux && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/mkb
COPY pyproject.toml README.md LICENSE .ci/constraints.txt ./
COPY problems problems
COPY runner runner
RUN mkdir leaderboard mkb_site && python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --constraint constraints.txt --editable '.[runner]'
ENV PATH=/opt/venv/bin:$PATH CUDA_PATH=/usr/local/cuda
CMD ["celery", "-A", "runner.worker", "worker", "-Q", "gpu-cuda", "--pool", "solo"]
