//go:build unix && !aix && !solaris

package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder locks the folder for this process, until unlock is called.
func lockFolder(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the folder of the queue: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &LockedError{path}
		}
		return nil, fmt.Errorf("locking the folder of the queue: %w", err)
	}
	return func() error {
		// A program that is being started has inherited the file until it runs, so
		// that closing the file alone would not unlock the folder.
		return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
	}, nil
}
