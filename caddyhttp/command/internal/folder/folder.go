// Package folder writes a Caddyfile and the files with its secrets into a folder, which
// nobody but the user can read.
package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/caddy-notify/caddy-notify/caddyhttp"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
)

// Names in the folder.
const (
	Caddyfile = "Caddyfile" // the configuration
	Secrets   = "secrets"   // the folder with the other files
	Password  = "password"  // in Secrets: a password that was made
)

// File is a file to write.
type File struct{ Path, Text string }

// Path returns the absolute path of a folder that --out names. The error is for a path that
// a Caddyfile cannot have in a placeholder.
func Path(folder string) (string, error) {
	out, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("--out: %w", err)
	}
	if !placeholder.IsWhole("{file." + out + "}") {
		return "", fmt.Errorf("--out: the Caddyfile cannot name files in %s, "+
			"because the path has a space, a quote or a brace; choose another folder", out)
	}
	return out, nil
}

// CheckAbsent returns an error that ends with remedy if one of the files exists.
func CheckAbsent(paths []string, remedy string) error {
	for _, path := range paths {
		switch _, err := os.Lstat(path); {
		case err == nil:
			return fmt.Errorf("%s exists already, so nothing was written; %s", path, remedy)
		case !errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("writing the Caddyfile: %w", err)
		}
	}
	return nil
}

// Write writes files that only the user can read into the folder out and its folder
// [Secrets], which it makes. It writes nothing if one of the files exists, unless replace is
// true. The error then ends with remedy.
func Write(out string, files []File, replace bool, remedy string) error {
	if !replace {
		paths := make([]string, len(files))
		for i, f := range files {
			paths[i] = f.Path
		}
		if err := CheckAbsent(paths, remedy); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(out, 0o700); err != nil {
		return fmt.Errorf("creating the folder of --out: %w", err)
	}
	if err := makePrivate(filepath.Join(out, Secrets)); err != nil {
		return err
	}
	for _, f := range files {
		if err := f.write(replace); err != nil {
			return fmt.Errorf("writing a file: %w", err)
		}
	}
	return nil
}

// makePrivate creates a folder that only the user can read, or checks that an
// existing folder is one.
func makePrivate(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s exists already, but is not a folder; remove it", dir)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("other users can read the folder %s, which is for secrets; change that with chmod 700", dir)
	}
	return nil
}

// write writes the file completely or not at all.
func (f File) write(replace bool) (err error) {
	if !replace {
		file, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return f.fill(file)
	}
	file, err := os.CreateTemp(filepath.Dir(f.Path), ".migrate-*")
	if err != nil {
		return err
	}
	if err := f.fill(file); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), f.Path); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// fill writes the text into a new file and closes it. If that fails, it removes
// the file.
func (f File) fill(file *os.File) error {
	_, err := file.WriteString(f.Text)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// Check returns an error if a Caddyfile does not load.
func Check(name string) error {
	config, err := caddyhttp.ReadConfig(nil, name, "caddyfile")
	if err != nil {
		return err
	}
	return config.Validate()
}
