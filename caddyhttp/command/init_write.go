package command

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/folder"
)

// What the Caddyfile of init calls things: as in the examples of the documentation.
const (
	initKey  = "ops"
	initUser = "monitoring"
	initPort = ":8080"
)

// firstConfig is a first configuration.
type firstConfig struct {
	site     string // "" if only programs on this machine may send
	password string // of the site
	url      string // where messages go
	service  string // its name
	keep     bool
}

// setSite sets the site to an answer: local, or the address of a site.
func (c *firstConfig) setSite(text string) error {
	if text == localSite {
		return nil
	}
	bad := errors.New("this is no address of a site; write local, a domain name such as alerts.example.com, or a port such as :8080")
	if strings.ContainsAny(text, " \t\r\n{}\"`#,*") || text == "" || strings.Contains(strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://"), "/") {
		return bad
	}
	if _, err := netip.ParseAddr(text); err != nil {
		if a, err := httpcaddyfile.ParseAddress(text); err != nil || a.Host == "" && a.Port == "" || !strings.ContainsAny(text, ".:") && a.Host != "localhost" {
			return bad
		}
	}
	c.site = text
	return nil
}

// address returns the address of the site for a program on this machine, or for all if
// it has a name.
func (c *firstConfig) address() string {
	switch {
	case c.site == "":
		return "http://127.0.0.1" + initPort
	case strings.HasPrefix(c.site, ":"):
		return "http://localhost" + c.site
	case strings.Contains(c.site, "://"):
		return strings.Replace(c.site, "://:", "://localhost:", 1)
	case strings.HasSuffix(c.site, ":80"):
		return "http://" + strings.TrimSuffix(c.site, ":80")
	}
	return "https://" + c.site
}

// files returns the files of the configuration in a folder: those with secrets, and
// then the Caddyfile.
func (c *firstConfig) files(out string) (files []folder.File, err error) {
	secret := func(name, text string) string {
		path := filepath.Join(out, folder.Secrets, name)
		files = append(files, folder.File{Path: path, Text: text + "\n"})
		return path
	}
	w := new(folder.CaddyfileWriter)
	w.Comment(`Written by "caddy notify init". Start it with

	caddy run --config ` + filepath.Join(out, folder.Caddyfile) + `

After a change: caddy reload --config with the same file. A mistake is refused, with
its line.`)
	c.writeOptions(w, secret)
	if err := c.writeSite(w, secret); err != nil {
		return nil, err
	}
	return append(files, folder.File{Path: filepath.Join(out, folder.Caddyfile), Text: w.String()}), nil
}

// writeOptions writes the global options: the key and the events. secret returns the path of
// a file with a secret.
func (c *firstConfig) writeOptions(w *folder.CaddyfileWriter, secret func(name, text string) string) {
	w.Open("")
	w.Open("notify")
	if c.keep {
		w.Comment("Keeps messages that cannot be delivered at once, and tries again, also after a\ncrash or a restart.")
		w.Line("queue")
	} else {
		w.Comment("Remove the # to keep messages that cannot be delivered at once, and to try again,\nalso after a crash or a restart.\nqueue")
	}
	w.Line("")
	w.Comment("Every site below may use this key. Its address ends with its name.")
	w.Open("key " + initKey)
	w.Comment("The notification URL (" + c.service + ") is in a separate file, because it is a secret.")
	w.Line("url {file." + secret(initKey, c.url) + "}")
	w.Line("")
	w.Comment("More destinations: with the tag phone, \"tag=phone\" in a message chooses it.\nurl ntfys://ntfy.sh/my-alerts phone")
	w.Close()
	w.Close()
	w.Line("")
	w.Comment("A certificate that cannot be renewed becomes a message, too.")
	w.Open("events")
	w.Line("on cert_failed notify " + initKey)
	w.Close()
	w.Close()
	w.Line("")
}

// writeSite writes the site. secret is as for writeOptions.
func (c *firstConfig) writeSite(w *folder.CaddyfileWriter, secret func(name, text string) string) error {
	if c.site == "" {
		w.Comment("Programs on this machine may send, without a password. Before you remove bind, put\nbasic_auth in front of notify.")
		w.Open("http://" + initPort)
		w.Line("bind 127.0.0.1")
	} else {
		w.Comment("Who has the password may send. Without a domain name, it is not encrypted on its way.")
		w.Open(c.site)
		hash, err := folder.HashPassword(c.password)
		if err != nil {
			return err
		}
		w.Comment("The password is in " + secret(folder.Password, c.password) + ". caddy hash-password makes the\nhash of another one.")
		w.Open("basic_auth")
		w.Line(initUser + " " + hash)
		w.Close()
	}
	w.Line("")
	w.Open("notify")
	w.Comment("Clients cannot bring notification URLs of their own.")
	w.Line("stateless off")
	w.Close()
	w.Line("")
	w.Comment("Without this, a message to a mistyped address would look sent.")
	w.Line("respond 404")
	w.Close()
	return nil
}

// report writes what was written and what to do next.
func (c *firstConfig) report(w io.Writer, out string) error {
	caddyfile, user := filepath.Join(out, folder.Caddyfile), ""
	if c.site != "" {
		user = fmt.Sprintf("-u %s:\"$(cat %s)\" ", initUser, filepath.Join(out, folder.Secrets, folder.Password))
	}
	_, err := fmt.Fprintf(w, `Written: %s, and its secrets in %s

Start the gateway:

  caddy run --config %s

Send a message, in another terminal:

  curl %s-d "title=Disk" -d "body=91%% full" %s/notify/%s
`, caddyfile, filepath.Join(out, folder.Secrets), caddyfile, user, c.address(), initKey)
	return err
}
