package safety

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// inNamespace runs the calling test once more, in a process with new namespaces
// of the kinds in flags. It returns true in that process, and false in the first
// one, which then has the result. The test is skipped if the system allows no
// namespaces.
func inNamespace(t *testing.T, flags uintptr) (inside bool) {
	t.Helper()
	const mark = "SAFETY_NAMESPACE"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), mark+"="+t.Name(), programVariable+"="+program)
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: flags}
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := c.CombinedOutput()
	switch {
	case err != nil && len(out) == 0:
		t.Skipf("no namespace: %v", err)
	case err != nil:
		t.Errorf("in a namespace: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()):
		t.Skipf("in a namespace: %s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("the test did not run in a namespace:\n%s", out)
	}
	return false
}

// smallDisk mounts a file system of a few mebibytes for a test, and returns where.
// Like [inNamespace], it runs the test once more, and reports whether this is the
// process that has the disk.
func smallDisk(t *testing.T, mebibytes int) (folder string, inside bool) {
	t.Helper()
	if !inNamespace(t, syscall.CLONE_NEWNS) {
		return "", false
	}
	folder = t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%dm", mebibytes)); err != nil {
		t.Skipf("no small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder, true
}
