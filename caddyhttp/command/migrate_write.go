package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	caddyfileName = "Caddyfile"
	secretsFolder = "secrets"
)

// newFile is a file to write.
type newFile struct{ path, text string }

// files returns the files of a migration into a folder: those with secrets, and
// then the Caddyfile.
func (m *migration) files(out string) (files []newFile, err error) {
	w := new(caddyfileWriter)
	secret := func(name, text string) string {
		path := filepath.Join(out, secretsFolder, name)
		files = append(files, newFile{path, text + "\n"})
		return "{file." + path + "}"
	}
	w.comment(`Written by "caddy notify migrate" from the configuration of an Apprise API.
The notification URLs are in separate files, because they have secrets.`)
	w.line("")
	w.comment(`The port of the Apprise API, without HTTPS. Write the name of your host
instead, such as alerts.example.com, and Caddy gets a certificate for it.`)
	if m.login == nil {
		w.comment("Everybody who can reach the site can send: add basic_auth for a password.")
	} else {
		w.comment("Without HTTPS, the password is not encrypted on its way.")
	}
	w.open(m.address)
	if m.prefix != "" {
		w.open("handle_path " + m.prefix + "/*")
	}
	if m.login != nil {
		if err := m.writeLogin(w); err != nil {
			return nil, err
		}
		if m.login.generated {
			secret(passwordFile, m.login.password)
			m.skip("APPRISE_PASSWORD: it is not set, so only the logins of keys could be used; the site asks for the user %s and the password in %s instead", m.login.user, filepath.Join(out, secretsFolder, passwordFile))
		}
	}
	w.open("notify")
	taken := map[string]int{}
	for _, k := range m.keys {
		name := strings.ToLower(k.name) // file systems may ignore case
		if taken[name]++; taken[name] > 1 {
			name = fmt.Sprintf("%s.%d", name, taken[name])
		}
		writeKey(w, k, func(kind string, i int, text string) string {
			return secret(fmt.Sprintf("%s.%s%d", name, kind, i+1), text)
		})
	}
	for i, u := range m.defaultURLs {
		w.comment(u.label)
		w.line("default_urls " + secret(fmt.Sprintf("default_urls-%d", i+1), u.url))
	}
	if len(m.defaultURLs) > 0 {
		w.line("")
	}
	m.writeSettings(w)
	w.close()
	w.line("respond 404")
	w.close()
	if m.prefix != "" {
		w.line("respond 404")
		w.close()
	}
	return append(files, newFile{filepath.Join(out, caddyfileName), w.String()}), nil
}

func (m *migration) writeSettings(w *caddyfileWriter) {
	if len(m.services.Allow)+len(m.services.Deny) > 0 {
		w.open("services")
		if len(m.services.Allow) > 0 {
			w.line("allow " + strings.Join(m.services.Allow, " "))
		} else {
			w.line("deny " + strings.Join(m.services.Deny, " "))
		}
		w.close()
	}
	if len(m.attachments) > 0 {
		w.open("attachments")
		for _, line := range m.attachments {
			w.line(line)
		}
		w.close()
	}
	if m.pageOff {
		w.line("page off")
	}
	if m.noURLs {
		w.line("stateless off")
	}
	if len(m.keys) > 0 {
		w.comment("apprise:// of Apprise 2 names the key in a header.")
		w.line("config_id on")
	}
	if len(m.origins) > 0 {
		w.line("trusted_origins " + strings.Join(m.origins, " "))
	}
	w.comment(`URLs and files of clients may lead to public addresses only. Apprise API
also allows private addresses: allow those that your clients need.`)
	w.comment("egress {\n\tallow private_ranges\n}")
}

// writeKey writes a key. secret returns the placeholder for a secret.
func writeKey(w *caddyfileWriter, k migratedKey, secret func(kind string, i int, text string) string) {
	w.open("key " + k.name)
	for i, u := range k.urls {
		w.comment(u.label)
		w.line(strings.Join(append([]string{"url", secret("url", i, u.url)}, u.tags...), " "))
	}
	for i, location := range k.includes {
		w.line("import_apprise " + secret("include", i, location))
	}
	if k.comment != "" {
		w.comment(k.comment)
	}
	if k.defaultTag != "" {
		w.line("default_tag " + k.defaultTag)
	}
	w.close()
	w.line("")
}

// caddyfileWriter writes the indented lines of a Caddyfile.
type caddyfileWriter struct {
	text  strings.Builder
	depth int
}

// String returns the text.
func (w *caddyfileWriter) String() string { return w.text.String() }

func (w *caddyfileWriter) line(text string) {
	if text != "" {
		text = strings.Repeat("\t", w.depth) + text
	}
	w.text.WriteString(text + "\n")
}

func (w *caddyfileWriter) comment(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		w.line(strings.TrimRight("# "+line, " "))
	}
}

func (w *caddyfileWriter) open(text string) {
	w.line(strings.TrimSpace(text + " {"))
	w.depth++
}

func (w *caddyfileWriter) close() {
	w.depth--
	w.line("}")
}

// writeFiles writes files that only the user can read, in a folder and its
// folder for secrets. It writes nothing if one of the files exists, unless
// replace is true. The remedy is for that error.
func writeFiles(out string, files []newFile, replace bool, remedy string) error {
	if !replace {
		paths := make([]string, len(files))
		for i, f := range files {
			paths[i] = f.path
		}
		if err := checkAbsent(paths, remedy); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(out, 0o700); err != nil {
		return fmt.Errorf("creating the folder of --out: %w", err)
	}
	if err := makePrivate(filepath.Join(out, secretsFolder)); err != nil {
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
func (f newFile) write(replace bool) (err error) {
	if !replace {
		file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return f.fill(file)
	}
	file, err := os.CreateTemp(filepath.Dir(f.path), ".migrate-*")
	if err != nil {
		return err
	}
	if err := f.fill(file); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), f.path); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// fill writes the text into a new file and closes it. If that fails, it removes
// the file.
func (f newFile) fill(file *os.File) error {
	_, err := file.WriteString(f.text)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
