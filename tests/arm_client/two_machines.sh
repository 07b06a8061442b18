# Two network namespaces as two machines, joined by a cable: a relay with keys on one, programs on the other.
# Run in a namespace of its own (unshare -n), so that nothing is left when it ends.
#   two_machines.sh PYTHON RELAY_COMMAND KEYS SAMPLE WAITER
set -eu
python=$1 serve=$2 keys=$3 sample=$4 waiter=$5
ip link set lo up
unshare -n sleep 100 & far=$!
trap 'kill $far $relay 2>/dev/null || true' EXIT
relay=$far
while [ "$(readlink /proc/$far/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
ip link add near type veth peer name far
ip link set far netns $far
ip addr add 10.99.0.1/24 dev near
ip link set near up
nsenter -t $far -n sh -c 'ip link set lo up; ip addr add 10.99.0.2/24 dev far; ip link set far up'

eval "exec $serve" >"$keys/said" & relay=$!
while ! grep -q 'listens at' "$keys/said"; do kill -0 $relay; sleep 0.05; done

export HBRT_BOARD=tcp://10.99.0.1:5557 HBRT_AUTOSTART=0 HBRT_KEYS="$keys/for-alice"
nsenter -t $far -n "$python" "$sample"

nsenter -t $far -n "$python" "$waiter" >"$keys/waits" & program=$!
while ! grep -q 'waits' "$keys/waits"; do kill -0 $program; sleep 0.05; done
ip link set near down # the cable is cut
wait $program
cat "$keys/waits"
kill -0 $relay # the relay goes on
