package safety

import (
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
