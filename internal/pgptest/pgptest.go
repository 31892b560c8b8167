// Package pgptest makes OpenPGP keys for tests.
package pgptest

import (
	"bytes"
	"testing"

	pgppacket "github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// KeyWithSignatures returns a key of nearly size bytes. Most of it is invalid
// signatures, which are slow to verify.
func KeyWithSignatures(t *testing.T, size int) []byte {
	t.Helper()
	e, err := openpgp.NewEntity("a", "", "a@b.example", &pgppacket.Config{
		Algorithm: pgppacket.PubKeyAlgoECDSA, Curve: pgppacket.CurveBrainpoolP512,
	})
	if err != nil {
		t.Fatal(err)
	}
	var key, last bytes.Buffer
	if err := e.Serialize(&key); err != nil {
		t.Fatal(err)
	}
	for r := pgppacket.NewOpaqueReader(bytes.NewReader(key.Bytes())); ; {
		p, err := r.Next()
		if err != nil {
			break
		}
		last.Reset()
		if err := p.Serialize(&last); err != nil {
			t.Fatal(err)
		}
	}
	last.Bytes()[last.Len()-1] ^= 1
	data := key.Bytes()[:key.Len()-last.Len()]
	for len(data)+last.Len() <= size {
		data = append(data, last.Bytes()...)
	}
	return data
}
