package gatewaytest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// BackUp copies the stored queue into a folder, in the state that a kill or a restore leaves, and
// returns the folder. The queue must have a secret, since its key is not copied.
func (g *Gateway) BackUp(dir string) string {
	t := g.t
	t.Helper()
	var b bytes.Buffer
	if err := cmp.Or(g.shared, g.Rooms().Outbox.Store).Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
