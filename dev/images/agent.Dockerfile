FROM scratch
COPY root/ /
ENTRYPOINT ["/usr/bin/spiderpool-agent"]
