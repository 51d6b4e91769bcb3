#!/bin/busybox sh
# First process of a Heddle guest. It loads the network card's driver, gives the card its addresses, and then serves
# commands that come as lines over the second serial port:
#
#   host → guest   run ID BASE64(command)            guest → host   ready KERNEL-RELEASE
#                  kill ID                                          failed REASON
#                                                                   done ID EXIT-STATUS =BASE64(stdout) =BASE64(stderr)
#
# Everything it needs to know is on the kernel command line, as words that begin with "heddle.".

/bin/busybox mkdir -p /bin /sbin /usr/bin /usr/sbin /proc /sys /dev /run/jobs /run/netns /tmp /root /var
/bin/busybox ln -s /run /var/run
/bin/busybox --install -s
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
port=/dev/ttyS1

stty -F $port raw -echo clocal
exec 3<>$port

fail() {
	echo "failed $*" >&3
	echo "heddle guest: $*"
	# The first process must not end; QEMU is stopped by the host.
	while :; do sleep 3600; done
}

# await RUNS COMMAND…: try a command up to RUNS times, 20 ms apart.
await() {
	left=$1
	shift
	until "$@"; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || return 1
		usleep 20000
	done
}

modules= addrs= mtu= vlan=
for word in $(cat /proc/cmdline); do
	case $word in
	heddle.modules=*) modules=${word#*=} ;;
	heddle.addrs=*) addrs=${word#*=} ;;
	heddle.mtu=*) mtu=${word#*=} ;;
	heddle.vlan=*) vlan=${word#*=} ;;
	heddle.name=*) hostname "${word#*=}" ;;
	esac
done

# /modules/NAME.order lists the files to load for module NAME, dependencies first.
for name in $(echo "$modules" | tr , ' '); do
	[ -e "/modules/$name.order" ] || fail "the image has no module $name"
	while read -r file; do
		[ -d "/sys/module/$file" ] || insmod "/modules/$file.ko" || fail "cannot load module $file"
	done <"/modules/$name.order"
done

ip link set lo up
await 3000 [ -e /sys/class/net/eth0 ] || fail "no network card appeared within a minute"
# Addresses count at once: the lab gives each only once, and duplicate detection would hold them back for seconds.
for scope in all default eth0; do
	echo 0 >/proc/sys/net/ipv6/conf/$scope/accept_dad
done
if [ -n "$mtu" ]; then
	ip link set eth0 mtu "$mtu" || fail "the network card refuses an MTU of $mtu"
fi
ip link set eth0 up || fail "cannot bring eth0 up"
await 3000 grep -q 1 /sys/class/net/eth0/carrier || fail "eth0 has no link within a minute"
device=eth0
if [ -n "$vlan" ]; then
	device=eth0.$vlan
	vconfig add eth0 "$vlan" >/dev/null || fail "cannot make VLAN interface $device"
	echo 0 >"/proc/sys/net/ipv6/conf/$device/accept_dad"
	ip link set "$device" up || fail "cannot bring $device up"
fi
for addr in $(echo "$addrs" | tr , ' '); do
	ip addr add "$addr" dev "$device" || fail "cannot give $device the address $addr"
done

# One process writes all answers, so that lines never mix; a job announces its end through a pipe.
mkfifo /run/ended
exec 4<>/run/ended
answer() {
	while read -r id status <&4; do
		job=/run/jobs/$id
		echo "done $id $status =$(base64 -w 0 "$job/out") =$(base64 -w 0 "$job/err")" >&3
		rm -rf "$job"
	done
}
answer &

# end PID: kill a command and all of its session. Before it has one, which a busy guest may take a while to give it, the command is alone.
end() {
	kill -KILL "-$1" 2>/dev/null && return
	kill -KILL "$1" 2>/dev/null
	kill -KILL "-$1" 2>/dev/null
}

# work ID: run the command of a job in a session of its own and report its end.
work() {
	job=/run/jobs/$1
	setsid sh "$job/command" </dev/null >"$job/out" 2>"$job/err" 3>&- 4>&- &
	pid=$!
	echo $pid >"$job/pid"
	[ -e "$job/killed" ] && end $pid
	wait $pid
	echo "$1 $?" >&4
}

# serve: take the host's lines. A shell that reads forgets what it has of a line when a child ends meanwhile (busybox's read begins anew after
# SIGCHLD). So whoever reads here has no child that runs on: each job is left to the first process, which takes in all orphans.
serve() {
	while read -r verb id text <&3; do
		job=/run/jobs/$id
		case $verb in
		run)
			mkdir -p "$job"
			echo "$text" | base64 -d >"$job/command"
			(work "$id" &)
			;;
		kill)
			if [ -d "$job" ]; then
				: >"$job/killed"
				[ -s "$job/pid" ] && end "$(cat "$job/pid")"
			fi
			;;
		esac
	done
	fail "the command channel was closed"
}

cd /root
echo "ready $(uname -r)" >&3
serve &
# Waiting for a child of its own takes in the others too.
while :; do sleep 3600; done
