package mailto

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// pgpKeys are the keys for a mail.
type pgpKeys struct {
	public    openpgp.EntityList // from the URL, to encrypt to
	private   openpgp.EntityList // from the URL, to sign with
	directory keyDirectory       // keys of recipients
}

// readKeys reads the keys in the URL and checks that they suit its mode.
func (m *service) readKeys() (err error) {
	if m.pgppub != "" {
		if m.keys.public, err = parseKey(m.pgppub); err != nil {
			return fmt.Errorf("pgppub %w", err)
		}
	}
	if m.pgpprv != "" {
		if m.keys.private, err = parseKey(m.pgpprv); err != nil {
			return fmt.Errorf("pgpprv %w", err)
		}
		switch key := m.keys.private[0].PrivateKey; {
		case key == nil:
			return errors.New("pgpprv is a public key; give the private key")
		case key.Encrypted:
			return errors.New("pgpprv has a passphrase; export the key without one")
		}
	}
	switch mode := m.pgpMode(); {
	case mode == pgpEncrypt && m.keys.public == nil && !m.wkd:
		return errors.New("pgp=encrypt needs a key; give it as pgppub, or have keys looked up with wkd=yes")
	case mode == pgpSign && m.keys.private == nil:
		return errors.New("pgp=sign needs a key; give it as pgpprv")
	}
	return nil
}

// parseKey reads a key in base64, armored or not.
func parseKey(text string) (openpgp.EntityList, error) {
	clean := strings.NewReplacer(" ", "+", "-", "+", "_", "/", "=", "").Replace(text)
	data, err := base64.RawStdEncoding.DecodeString(clean)
	if err != nil {
		return nil, errors.New("is not base64; export the key and encode it, as in gpg --export ID | base64 -w0")
	}
	keys, err := readKeyRing(data)
	if err != nil {
		return nil, errors.New("is not an OpenPGP key")
	}
	return keys[:1], nil
}

// readKeyRing reads one or more keys, armored or not.
func readKeyRing(data []byte) (openpgp.EntityList, error) {
	read := openpgp.ReadKeyRing
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN PGP")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keys, err := read(bytes.NewReader(data))
	if err == nil && len(keys) == 0 {
		err = errors.New("no key")
	}
	return keys, err
}

// pgpMode returns what to do: the parameter pgp or, by default, what the keys
// allow.
func (m *service) pgpMode() int {
	switch {
	case m.pgp != pgpUnset:
		return m.pgp
	case m.keys.public != nil || m.wkd:
		return pgpEncrypt
	case m.keys.private != nil:
		return pgpSign
	}
	return pgpNone
}
