"""The command line: serve the scripted demo model until interrupted."""

import argparse
import logging
import sys

from runner.demo.server import Behaviour, DemoServer


def main() -> int:
    """Serve; return 0 after an interrupt, 2 when the options or the address do not serve."""
    options = _parser().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    try:
        behaviour = Behaviour(options.error_rate, options.seed, options.delay_ms)
        server = DemoServer(options.host, options.port, behaviour)
    except (ValueError, OSError, OverflowError) as error:
        sys.stderr.write(
            f"the scripted demo server cannot start on {options.host}:{options.port}: {error}\n"
        )
        return 2
    logging.info("scripted demo model at %s (OpenAI wire: add /v1)", server.base_url)
    sys.stdout.flush()
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            logging.info("scripted demo model stopped")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m runner.demo",
        description="A scripted model behind the OpenAI and Anthropic wires; any key but sk-bad.",
    )
    parser.add_argument("--port", type=int, required=True, help="0 takes a free one and says which")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument(
        "--error-rate", type=float, default=0.0, metavar="P", help="share of requests that fail"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="decides which ones fail")
    parser.add_argument(
        "--delay-ms", type=float, default=0.0, metavar="D", help="wait before each answer"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
