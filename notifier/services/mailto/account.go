package mailto

import (
	"net"
	"strings"

	"golang.org/x/net/idna"
)

// Encryption of the connection to a mail server.
const (
	modeStartTLS = "starttls" // after the command STARTTLS (RFC 3207)
	modeTLS      = "ssl"      // from the first byte (RFC 8314)
	modePlain    = "insecure" // none
)

// account is where and how to sign in.
type account struct {
	host           string
	port           int
	mode           string
	user, password string // both empty: do not sign in
}

// provider is a provider of mailboxes whose server is known.
type provider struct {
	domains string // of its addresses, separated by white space
	host    string
	port    int
	mode    string
	login   loginName
}

// loginName is which user name a provider expects.
type loginName int

const (
	loginAny     loginName = iota // as in the URL
	loginAddress                  // the whole address
	loginUser                     // the part before the @
)

// findAccount returns the server and the credentials, from the URL or from the
// known provider of the user's address.
func (m *service) findAccount() account {
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
	return a
}

// defaultMode returns the encryption for URLs without mode. Port 465 means TLS
// (RFC 8314, section 3.3).
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

// provider returns the known provider of the user's address. It returns nil if
// there is none, if the URL names the server or if it has no user.
func (m *service) provider() *provider {
	local, domain, _ := strings.Cut(m.User, "@")
	if m.smtp != "" || strings.TrimSpace(local) == "" {
		return nil
	}
	if !isPlaceholder(m.Host) {
		domain = m.Host
	}
	return providerOf[strings.ToLower(domain)]
}

// providerOf has the known providers by domain.
var providerOf = func() map[string]*provider {
	of := map[string]*provider{}
	for i := range providers {
		p := &providers[i]
		for domain := range strings.FieldsSeq(p.domains) {
			of[domain] = p
		}
	}
	return of
}()

// isLocalhost reports whether the host is the machine itself. There the sender
// is root by default.
func isLocalhost(host string) bool {
	return strings.EqualFold(host, "localhost") || strings.EqualFold(host, "localhost.localdomain")
}
