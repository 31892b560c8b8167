package mailto

import (
	"net"
	"strings"

	"golang.org/x/net/idna"
)

// How the connection to a mail server is encrypted.
const (
	modeStartTLS = "starttls" // from the command STARTTLS on (RFC 3207)
	modeTLS      = "ssl"      // from its first byte (RFC 8314)
	modePlain    = "insecure" // not at all
)

// account is where and how to sign in.
type account struct {
	host           string
	port           int
	mode           string
	user, password string // both are empty where there is nobody to sign in
}

// provider is what is known of a provider of mailboxes.
type provider struct {
	domains string // of its addresses, separated by white space
	host    string
	port    int
	mode    string
	login   loginName
}

// loginName is the name that a provider wants to hear.
type loginName int

const (
	loginAny     loginName = iota
	loginAddress           // the whole address
	loginUser              // what is before the @
)

// findAccount works out the server and how to sign in there, from the URL or
// from what is known of the provider of the user's address.
func (m *service) findAccount() (account, error) {
	a := account{host: m.smtp, mode: m.mode, user: m.User, password: m.Password}
	port := m.Port
	known := m.provider()
	if known != nil {
		a.host = known.host
		if a.mode == "" && port == 0 {
			port = known.port
		}
		switch local, _, isAddress := strings.Cut(m.User, "@"); {
		case known.login == loginUser:
			a.user = local
		case known.login == loginAddress && !isAddress:
			a.user += "@" + m.Host
		}
	}
	if a.host == "" {
		a.host = m.Host
		if isPlaceholder(a.host) {
			_, a.host, _ = strings.Cut(m.sender.Address, "@")
		}
	}
	if a.mode == "" {
		a.mode = m.defaultMode(port, known)
	}
	if port == 0 {
		port = map[string]int{modeStartTLS: 587, modeTLS: 465, modePlain: 25}[a.mode]
	}
	a.port = port
	a.host = strings.Trim(a.host, "[]")
	if ascii, err := idna.Lookup.ToASCII(a.host); err == nil && net.ParseIP(a.host) == nil {
		a.host = ascii
	}
	if a.user = strings.TrimSpace(a.user); a.user == "" || a.password == "" {
		a.user, a.password = "", ""
	}
	return a, nil
}

// defaultMode is the encryption where the URL does not say it. The ports that
// stand for one kind of it (RFC 8314, section 3.3) mean that kind.
func (m *service) defaultMode(port int, known *provider) string {
	switch {
	case port == 465:
		return modeTLS
	case !m.Secure && known == nil:
		return modePlain
	case known != nil && port != 587:
		return known.mode
	}
	return modeStartTLS
}

// provider is that of the user's address, or nil: where the URL says the
// server itself, and where it names no user.
func (m *service) provider() *provider {
	local, domain, _ := strings.Cut(m.User, "@")
	if m.smtp != "" || strings.TrimSpace(local) == "" {
		return nil
	}
	if !isPlaceholder(m.Host) {
		domain = m.Host
	}
	for i, p := range providers {
		for d := range strings.FieldsSeq(p.domains) {
			if strings.EqualFold(d, domain) {
				return &providers[i]
			}
		}
	}
	return nil
}

// isLocalhost says that the host is the machine itself, where a mail
// without a sender is root's.
func isLocalhost(host string) bool {
	return strings.EqualFold(host, "localhost") || strings.EqualFold(host, "localhost.localdomain")
}
