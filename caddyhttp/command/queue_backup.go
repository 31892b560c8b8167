package command

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
)

func (f *queueFlags) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup <file>",
		Short: "Copies the queue of a running server into a file",
		Long: `
Copies the queue of a running server into a new tar archive: the messages, the
attachments and, unless the configuration has a secret, the key. Unpacked into
an empty folder, it is the folder of the queue.
`,
		Args: cobra.ExactArgs(1),
		RunE: exit.WithCode(func(cmd *cobra.Command, args []string) error {
			if err := f.backup(args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The queue is in %s.\n", args[0])
			return nil
		}),
	}
}

// backup copies the queue into a new file. It removes the file if that fails.
func (f *queueFlags) backup(path string) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; name a new file", path)
	} else if err != nil {
		return fmt.Errorf("creating the back-up: %w", err)
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	resp, err := f.open(http.MethodGet, "/notify/queue/backup", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	key, err := readBackupKey(resp.Header)
	if err != nil {
		return err
	}
	if err := copyBackup(out, resp.Body, key); err != nil {
		return fmt.Errorf("copying the queue: %w; if the server ended the copy, its log says why", err)
	}
	return out.Sync()
}

// readBackupKey returns the key of the queue, which the server names but does
// not send. It returns nil if the configuration has a secret.
func readBackupKey(h http.Header) ([]byte, error) {
	name := h.Get("Queue-Key-File")
	if name == "" {
		return nil, nil
	}
	path, err := url.PathUnescape(name)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of the admin API: %w", err)
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the queue, without which a back-up cannot be read: "+
			"%w; run the command on the machine of the server, as a user who may read the file", err)
	}
	return key, nil
}

// copyBackup copies an archive and adds the key, if it is not nil.
func copyBackup(w io.Writer, r io.Reader, key []byte) error {
	in, out := tar.NewReader(r), tar.NewWriter(w)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, h.Size); err != nil {
			return err
		}
	}
	if key != nil {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "key", Size: int64(len(key)), Mode: 0o600, ModTime: time.Now()}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(key); err != nil {
			return err
		}
	}
	return out.Close()
}
