# Agent host: talks to the models and holds the attempts' sandboxes; no database, no GPU.
FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap util-linux && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/mkb
COPY pyproject.toml README.md LICENSE .ci/constraints.txt ./
COPY problems problems
COPY runner runner
RUN mkdir leaderboard mkb_site && pip install --no-cache-dir --constraint constraints.txt --editable '.[runner]'
CMD ["celery", "-A", "runner.worker", "worker", "-Q", "agent", "--pool", "threads", "--concurrency", "10"]
