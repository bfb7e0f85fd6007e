# One image for every role: agent, watcher, worker and the Pods of node steps; the target `compute`
# is the same with torch.
FROM python:3.11-slim AS build
RUN pip install --no-cache-dir uv
WORKDIR /src
COPY pyproject.toml uv.lock README.md LICENSE worker.py ./
COPY activities activities
COPY console console
COPY deploy deploy
COPY fleet fleet
COPY intake intake
COPY policies policies
COPY probes probes
COPY simulator simulator
COPY workflows workflows
ENV UV_PROJECT_ENVIRONMENT=/opt/gpumend UV_COMPILE_BYTECODE=1
RUN uv sync --locked --no-dev --extra engine --no-editable

# The same with torch, for the Pods of node steps where policy lists the check `compute`:
# docker build --target compute. Large (several GB), and the only image that has a GPU library.
FROM build AS build-compute
ARG TORCH="torch>=2.4,<3"
RUN uv pip install --no-cache --python /opt/gpumend/bin/python "$TORCH"

FROM python:3.11-slim AS gpumend
# nsenter and chroot for steps that run the host's own tools
RUN apt-get update && apt-get install -y --no-install-recommends util-linux && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/gpumend /opt/gpumend
ENV PATH=/opt/gpumend/bin:$PATH PYTHONUNBUFFERED=1
ENTRYPOINT ["gpumend"]

FROM gpumend AS compute
COPY --from=build-compute /opt/gpumend /opt/gpumend

# What is built unless a target is named.
FROM gpumend
