package migrate

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/folder"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
)

// migratedFiles returns the files of a migration into the folder out: those with secrets, and
// then the Caddyfile.
func migratedFiles(out string, s *settings, keys []migratedKey, defaultURLs []migratedURL) (files []folder.File, err error) {
	w := new(folder.CaddyfileWriter)
	secret := func(name, text string) string {
		path := filepath.Join(out, folder.Secrets, name)
		files = append(files, folder.File{Path: path, Text: text + "\n"})
		return "{file." + path + "}"
	}
	s.writeHead(w)
	w.Open(s.address)
	if s.prefix != "" {
		w.Open("handle_path " + s.prefix + "/*")
	}
	if s.login != nil {
		if err := s.login.write(w); err != nil {
			return nil, err
		}
		if s.login.generated {
			secret(folder.Password, s.login.password)
			s.report.skip("APPRISE_PASSWORD: it is not set, so only the logins of keys could be used; "+
				"the site asks for the user %s and the password in %s instead",
				s.login.user, filepath.Join(out, folder.Secrets, folder.Password))
		}
	}
	w.Open("notify")
	if err := writeKeys(w, keys, secret); err != nil {
		return nil, err
	}
	for i, u := range defaultURLs {
		w.Comment(u.label)
		w.Line("default_urls " + secret(fmt.Sprintf("default_urls-%d", i+1), u.url))
	}
	if n := len(defaultURLs); n > 0 {
		w.Line("")
		s.report.moved = append(s.report.moved, "default_urls: "+words.Count(n, "URL"))
	}
	s.write(w, len(keys) > 0)
	w.Close()
	w.Line("respond 404")
	w.Close()
	if s.prefix != "" {
		w.Line("respond 404")
		w.Close()
	}
	return append(files, folder.File{Path: filepath.Join(out, folder.Caddyfile), Text: w.String()}), nil
}

// writeHead writes the comments before the site.
func (s *settings) writeHead(w *folder.CaddyfileWriter) {
	w.Comment(`Written by "caddy notify migrate" from the configuration of an Apprise API.
The notification URLs are in separate files, because they have secrets.`)
	w.Line("")
	w.Comment(`The port of the Apprise API, without HTTPS. Write the name of your host
instead, such as alerts.example.com, and Caddy gets a certificate for it.`)
	if s.login == nil {
		w.Comment("Everybody who can reach the site can send: add basic_auth for a password.")
	} else {
		w.Comment("Without HTTPS, the password is not encrypted on its way.")
	}
}

// write writes the settings of the block notify. Of keys, there are some if hasKeys is true.
func (s *settings) write(w *folder.CaddyfileWriter, hasKeys bool) {
	if len(s.services.Allow)+len(s.services.Deny) > 0 {
		w.Open("services")
		if len(s.services.Allow) > 0 {
			w.Line("allow " + strings.Join(s.services.Allow, " "))
		} else {
			w.Line("deny " + strings.Join(s.services.Deny, " "))
		}
		w.Close()
	}
	if len(s.attachments) > 0 {
		w.Open("attachments")
		for _, line := range s.attachments {
			w.Line(line)
		}
		w.Close()
	}
	if s.pageOff {
		w.Line("page off")
	}
	if s.noURLs {
		w.Line("stateless off")
	}
	if hasKeys {
		w.Comment("apprise:// of Apprise 2 names the key in a header.")
		w.Line("config_id on")
	}
	if len(s.origins) > 0 {
		w.Line("trusted_origins " + strings.Join(s.origins, " "))
	}
	w.Comment(`URLs and files of clients may lead to public addresses only. Apprise API
also allows private addresses: allow those that your clients need.`)
	w.Comment("egress {\n\tallow private_ranges\n}")
}

// writeKeys writes the keys. secret returns the placeholder for a secret in a file with a
// name.
func writeKeys(w *folder.CaddyfileWriter, keys []migratedKey, secret func(name, text string) string) error {
	taken := map[string]int{}
	for _, k := range keys {
		name := strings.ToLower(k.name) // file systems may ignore case
		if taken[name]++; taken[name] > 1 {
			name = fmt.Sprintf("%s.%d", name, taken[name])
		}
		if len(k.templates) > 0 {
			text, err := templateFile(k.templates)
			if err != nil {
				return err
			}
			k.file = strings.TrimSuffix(strings.TrimPrefix(secret(name+".yml", text), "{file."), "}")
		}
		writeKey(w, k, func(kind string, i int, text string) string {
			return secret(fmt.Sprintf("%s.%s%d", name, kind, i+1), text)
		})
	}
	return nil
}

// writeKey writes a key. secret returns the placeholder for a secret.
func writeKey(w *folder.CaddyfileWriter, k migratedKey, secret func(kind string, i int, text string) string) {
	w.Open("key " + k.name)
	for i, u := range k.urls {
		w.Comment(u.label)
		w.Line(strings.Join(append([]string{"url", secret("url", i, u.url)}, u.tags...), " "))
	}
	if k.file != "" {
		w.Comment("URLs with a template, which messages give values.")
		w.Line("import_apprise " + k.file)
	}
	for i, location := range k.includes {
		w.Line("import_apprise " + secret("include", i, location))
	}
	if k.comment != "" {
		w.Comment(k.comment)
	}
	if k.defaultTag != "" {
		w.Line("default_tag " + k.defaultTag)
	}
	w.Close()
	w.Line("")
}
