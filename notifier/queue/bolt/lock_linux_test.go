package bolt

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// TestUnlockWithInheritedFile checks that a closed store can be opened again
// while a program that is being started still has the lock file. Once, the
// folder stayed locked until that program ran.
func TestUnlockWithInheritedFile(t *testing.T) {
	path := t.TempDir()
	s, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	inherited := -1
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && to == filepath.Join(path, "lock") {
			fd, _ := strconv.Atoi(f.Name())
			if inherited, err = syscall.Dup(fd); err != nil {
				t.Fatal(err)
			}
		}
	}
	if inherited < 0 {
		t.Fatal("the lock file is not open")
	}
	defer syscall.Close(inherited)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
