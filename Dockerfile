# kafkashark in a container:
#
#   docker build -t kafkashark .
#   docker run --rm kafkashark demo
#   docker run --rm -v "$PWD:/captures:ro" kafkashark stats a.pcap
#   docker run --rm -it -v "$PWD:/captures:ro" kafkashark browse a.pcap
#   docker run --rm -i kafkashark dissect - < a.pcap
#
# tcpdump is there for live captures, which need `--network host --cap-add NET_RAW --user 0`.

FROM python:3.13-slim AS build
# The kernels are compiled; python:slim has Python's headers.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels ".[mock,browse]"

FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends tcpdump && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels "kafkashark[mock,browse]" && rm -rf /wheels
RUN useradd --create-home kafkashark
USER kafkashark
WORKDIR /captures
ENTRYPOINT ["kafkashark"]
CMD ["--help"]
