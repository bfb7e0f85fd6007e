# One image for every role: agent, watcher, worker and the Pods of node steps; the target `compute`
# is the same with torch, the target `dcgm` the same with `dcgmi`.
ARG DCGM=nvcr.io/nvidia/cloud-native/dcgm:4.5.2-1-ubuntu22.04
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

# The same with `dcgmi`, for hosts that have none, whose DCGM engine runs as a Pod: `dcgmi` and the
# engine must be of one version, so DCGM is the image of that Pod. Its library alone: no modules, so
# that no engine can run in here. docker build --target dcgm --build-arg DCGM=IMAGE
FROM ${DCGM} AS of-dcgm

FROM gpumend AS dcgm
COPY --from=of-dcgm /usr/bin/dcgmi /usr/local/bin/dcgmi
COPY --from=of-dcgm /usr/lib/*-linux-gnu/libdcgm.so.* /usr/local/lib/
RUN ldconfig

# What is built unless a target is named.
FROM gpumend
