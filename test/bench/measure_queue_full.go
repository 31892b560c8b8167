//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// diskSize is the size of the file system in the row about a full disk.
const diskSize = "64m"

// onSmallDisk changes a command so that a folder is a small file system for it.
// Nobody else sees the file system, and it ends with the process.
func onSmallDisk(c *exec.Cmd, dir string) {
	const mount = `mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"`
	c.Args = append([]string{"sh", "-c", mount, "sh", diskSize, dir, c.Path}, c.Args[1:]...)
	c.Path = "/bin/sh"
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
}

// queueFull measures how many messages a queue accepts until its disk is full,
// and how long it takes to deliver them when the destination is back.
func (b *bench) queueFull() error {
	if os.Getuid() != 0 {
		fmt.Println("a full disk is not measured: to mount a small file system, run as root")
		return nil
	}
	address, err := unusedAddress()
	if err != nil {
		return err
	}
	dir := filepath.Join(b.dir, "full")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	keys := "\t\tkey down {\n\t\t\turl json://" + address + "/\n\t\t}\n"
	c, err := b.start(b.binary, siteConfig{keys: keys, global: b.queueOption("full"), disk: dir})
	if err != nil {
		return err
	}
	defer c.stop()

	// The destination is down until the disk is full.
	back := &arrivals{at: map[int]time.Time{}}
	begin := time.Now()
	accepted, err := back.sendUntilRefused(c)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	begin = time.Now()
	if err := back.serve(address); err != nil {
		return err
	}
	defer back.close()
	all := back.wait(drainTime, accepted...)
	var arrived []time.Time
	for _, k := range accepted {
		if at, ok := back.arrival(k); ok {
			arrived = append(arrived, at)
		}
	}
	if len(arrived) == 0 {
		return errors.New("no message has arrived")
	}
	name := diskSize + "iB, full"
	if !all {
		name += fmt.Sprintf("; waited %v", drainTime)
	}
	first, last := slices.MinFunc(arrived, time.Time.Compare), slices.MaxFunc(arrived, time.Time.Compare)
	fmt.Printf("%-44s %10s %12s %10s %12s %12s %12s\n", "a disk, full of messages, and back", "accepted", "until 503, s", "arrived", "first s", "all s", "delivered/s")
	fmt.Printf("%-44s %10d %12.1f %10d %12.1f %12.1f %12.0f\n", name, len(accepted), took.Seconds(), len(arrived),
		first.Sub(begin).Seconds(), last.Sub(begin).Seconds(), float64(len(arrived))/max(last.Sub(first), time.Millisecond).Seconds())
	return nil
}

// sendUntilRefused sends messages until one is refused because the disk is full,
// and returns the numbers of the others.
func (a *arrivals) sendUntilRefused(c *caddy) (accepted []int, err error) {
	var next atomic.Int64
	var full atomic.Bool
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for !full.Load() {
				k := int(next.Add(1))
				_, e := a.send(c, "/notify/down", k)
				mu.Lock()
				switch {
				case e == nil:
					accepted = append(accepted, k)
				case !strings.HasPrefix(e.Error(), "503 "):
					err = e
					fallthrough
				default:
					full.Store(true)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return accepted, err
}
