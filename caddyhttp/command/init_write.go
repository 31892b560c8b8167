package command

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
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
func (c *firstConfig) files(out string) (files []newFile, err error) {
	secret := func(name, text string) string {
		path := filepath.Join(out, secretsFolder, name)
		files = append(files, newFile{path, text + "\n"})
		return path
	}
	w := new(caddyfileWriter)
	w.comment(`Written by "caddy notify init". Start it with

	caddy run --config ` + filepath.Join(out, caddyfileName) + `

After a change: caddy reload --config with the same file. A mistake is refused, with
its line.`)
	w.open("")
	w.open("notify")
	if c.keep {
		w.comment("Keeps messages that cannot be delivered at once, and tries again, also after a\ncrash or a restart.")
		w.line("queue")
	} else {
		w.comment("Remove the # to keep messages that cannot be delivered at once, and to try again,\nalso after a crash or a restart.\nqueue")
	}
	w.line("")
	w.comment("Every site below may use this key. Its address ends with its name.")
	w.open("key " + initKey)
	w.comment("The notification URL (" + c.service + ") is in a separate file, because it is a secret.")
	w.line("url {file." + secret(initKey, c.url) + "}")
	w.line("")
	w.comment("More destinations: with the tag phone, \"tag=phone\" in a message chooses it.\nurl ntfys://ntfy.sh/my-alerts phone")
	w.close()
	w.close()
	w.line("")
	w.comment("A certificate that cannot be renewed becomes a message, too.")
	w.open("events")
	w.line("on cert_failed notify " + initKey)
	w.close()
	w.close()
	w.line("")
	if c.site == "" {
		w.comment("Programs on this machine may send, without a password. Before you remove bind, put\nbasic_auth in front of notify.")
		w.open("http://" + initPort)
		w.line("bind 127.0.0.1")
	} else {
		w.comment("Who has the password may send. Without a domain name, it is not encrypted on its way.")
		w.open(c.site)
		hash, err := hashPassword(c.password)
		if err != nil {
			return nil, err
		}
		w.comment("The password is in " + secret(passwordFile, c.password) + ". caddy hash-password makes the\nhash of another one.")
		w.open("basic_auth")
		w.line(initUser + " " + hash)
		w.close()
	}
	w.line("")
	w.open("notify")
	w.comment("Clients cannot bring notification URLs of their own.")
	w.line("stateless off")
	w.close()
	w.line("")
	w.comment("Without this, a message to a mistyped address would look sent.")
	w.line("respond 404")
	w.close()
	return append(files, newFile{filepath.Join(out, caddyfileName), w.String()}), nil
}

// report writes what was written and what to do next.
func (c *firstConfig) report(w io.Writer, out string) error {
	caddyfile, user := filepath.Join(out, caddyfileName), ""
	if c.site != "" {
		user = fmt.Sprintf("-u %s:\"$(cat %s)\" ", initUser, filepath.Join(out, secretsFolder, passwordFile))
	}
	_, err := fmt.Fprintf(w, `Written: %s, and its secrets in %s

Start the gateway:

  caddy run --config %s

Send a message, in another terminal:

  curl %s-d "title=Disk" -d "body=91%% full" %s/notify/%s
`, caddyfile, filepath.Join(out, secretsFolder), caddyfile, user, c.address(), initKey)
	return err
}
