package safety

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// noSyncVariable is set in a process that runs the gateway without fsync.
const noSyncVariable = "SAFETY_NO_SYNC"

// runWithoutSync replaces this process with the gateway. In the gateway, fsync
// and fdatasync succeed without doing anything.
func runWithoutSync() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 2, K: unix.SYS_FSYNC},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_FDATASYNC},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO}, // with the number 0: success
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	p := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&p))); errno != 0 {
		return errno
	}
	return syscall.Exec(program, os.Args, os.Environ())
}

// TestQueuePowerCut simulates 2 power cuts, or 20 if soak is set: it copies the
// disk of a gateway that has just accepted messages, and starts a gateway with
// the copy. All messages arrive. Data that was not synced is not on the disk.
// So messages must be lost in a control run in which fsync does nothing.
func TestQueuePowerCut(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	if testing.Short() || racetest.Enabled {
		t.Skip("takes a while")
	}
	if os.Getuid() != 0 {
		t.Skip("mounting a disk needs root")
	}
	if !inNamespace(t, syscall.CLONE_NEWNS) {
		return
	}
	const maxControls = 3
	cuts := amount(soak, 20, 2)
	accepted, lost := 0, 0
	for range cuts {
		n, l := cutPower(t, false)
		accepted, lost = accepted+n, lost+l
	}
	t.Logf("%d power cuts: %d messages accepted, %d lost", cuts, accepted, lost)
	if lost > 0 {
		t.Errorf("%d of %d messages are lost", lost, accepted)
	}
	for range maxControls {
		if _, l := cutPower(t, true); l > 0 {
			t.Logf("without fsync, %d messages are lost", l)
			return
		}
	}
	t.Error("nothing is lost without fsync: the test proves nothing")
}

// cutPower simulates a power cut. It returns how many messages the gateway had
// accepted, and how many of them are lost.
func cutPower(t *testing.T, noSync bool) (accepted, lost int) {
	t.Helper()
	dir := t.TempDir()
	device, disk := filepath.Join(dir, "device"), filepath.Join(dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(device, 64<<20); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", name, err, out)
		}
	}
	for _, c := range [][]string{{"mkfs.ext4", "-q", "-F", device}, {"mount", "-o", "loop", device, disk}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no disk: %s: %v %s", c[0], err, out)
		}
	}
	mounted := true
	unmount := func() {
		if mounted {
			mounted = false
			run("umount", disk)
		}
	}
	defer unmount()

	c := newReceiver(t, nil)
	c.silence()
	g := prepare(t, queueOption(filepath.Join(disk, "queue")), "timeout 10m\nkey k {\nurl "+c.url+"/\n}")
	if noSync {
		g.env = append(g.env, noSyncVariable+"=1", programVariable+"="+program)
		g.program = os.Args[0]
	}
	g.run()
	var next atomic.Int64
	var mu sync.Mutex
	var titles []string
	var wg sync.WaitGroup
	want := 20 + rand.IntN(100)
	for range 4 {
		wg.Go(func() {
			for {
				title := fmt.Sprint(next.Add(1))
				status, _, _, err := g.tryPost("/notify/k", message{"title": title, "body": "x"}, "Prefer", "respond-async")
				if err != nil || status != http.StatusAccepted {
					return // the gateway was killed
				}
				mu.Lock()
				titles = append(titles, title)
				mu.Unlock()
			}
		})
	}
	eventually(t, "messages are accepted", func() bool { mu.Lock(); defer mu.Unlock(); return len(titles) >= want })
	time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
	g.kill()
	run("cp", "--sparse=always", device, device+".cut")
	wg.Wait()
	unmount()
	run("mount", "-o", "loop", device+".cut", disk)
	mounted = true
	defer unmount()
	c.release()
	g.program = program
	g.run()
	eventually(t, "the queue is empty", func() bool {
		_, metrics := g.get(g.adminURL+"/metrics", "*/*")
		return len(idleQueue.FindAllString(metrics, -1)) == 2
	})
	lost = len(c.missing(titles))
	g.kill()
	return len(titles), lost
}

var idleQueue = regexp.MustCompile(`(?m)^caddy_notify_queue_jobs\{state="(queued|sending)"\} 0$`)
