//go:build !windows && (!unix || aix || solaris)

package bolt

import (
	"fmt"
	"os"
	"path/filepath"
)

// lockFolder only creates the lock file, because the system has no flock. bbolt
// locks its database by other means and waits one second for it.
func lockFolder(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the folder of the queue: %w", err)
	}
	return f.Close, nil
}
