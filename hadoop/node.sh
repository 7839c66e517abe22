#!/bin/sh
# Runs a part of an HDFS on a Linux host of an experiment (docs/models/hdfs-on-hadoop.md):
#
#   node.sh namenode [-D KEY=VALUE ...]      on host0
#   node.sh datanode [-D KEY=VALUE ...]
#   node.sh write [-D KEY=VALUE ...] PREFIX FILES BYTES EVERY
#
# KEY is a key of Hadoop. conf/ has the keys that differ from Hadoop's defaults.
set -eu

# Exit code 127 ends the experiment at once, with this line, for servers too.
fail() {
    echo "node.sh: $1" >&2
    exit 127
}

role=${1:-nothing}
server=org.apache.hadoop.hdfs.server
case $role in
namenode) heap=96 blocks=none class=$server.namenode.NameNode ;;
datanode) heap=36 blocks=blocks class=$server.datanode.DataNode ;;
write) heap=48 blocks=none class=firstlight.hdfs.WriteFiles ;;
*) fail "'$role' is no part of HDFS: write namenode, datanode or write" ;;
esac
host=${FIRSTLIGHT_HOST:-}
[ -n "$host" ] || fail "this is no Linux host of an experiment: name this command in a [[program]]"
command -v java >/dev/null || fail "there is no java: make packages (Debian's default-jdk-headless)"
here=$(cd -P "$(dirname "$0")" && pwd)
built=$here/target
[ -f "$built/class-path" ] || fail "$built has no Hadoop: make hadoop"
if [ "$(hostname)" != "$host" ]; then
    exec unshare -u sh -c 'hostname "$FIRSTLIGHT_HOST" && exec sh "$@"' sh "$here/node.sh" "$@"
fi
shift

# All files are in the guest's memory. With temporary files in the machine's /tmp no two runs are the same.
directory=/dev/shm/hdfs-$host
mkdir -p "$directory"
# rack3.host1 is in the rack /rack3.
awk '$3 ~ /^rack/ { sub(/\..*/, "", $3); print $1, "/" $3 }' /etc/hosts >"$directory/racks"
# Programs start one after another, because virtual time stands still while a Java virtual machine starts.
sleep "$(echo "${host#host}" | awk '{ print $1 / 5 }')"

class_path=$(sed "s|^|$built/|" "$built/class-path" | paste -s -d :)
# The shared archive of classes halves the start time and the memory of each Java virtual machine.
set -- -XX:SharedArchiveFile="$built/classes.jsa" -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0 \
    -Xmx${heap}m -Xss256k -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
    -Dlog4j.configuration="file:$here/conf/log4j.properties" -Dhosts.blocks=$blocks -Dhosts.name="$host" \
    -Dhosts.directory="$directory" -Djava.io.tmpdir="$directory" -cp "$class_path:$here/conf" $class "$@"
[ "$role" != namenode ] || java "$@" -format -nonInteractive
exec java "$@"
