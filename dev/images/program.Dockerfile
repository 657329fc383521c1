FROM scratch
COPY root/ /
ENTRYPOINT ["/usr/bin/program"]
