package services

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"math/big"
	"strings"
	"testing"
)

// pkcs1 returns an RSA key of so many bits, whose numbers have the right sizes
// and are otherwise wrong.
func pkcs1(t *testing.T, bits uint, change func(k *pkcs1Key)) []byte {
	t.Helper()
	number := func(bits uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), bits-1) }
	k := &pkcs1Key{
		0, number(bits), 65537, number(bits), number(bits / 2),
		number(bits / 2), number(bits / 2), number(bits / 2), number(bits / 2),
	}
	if change != nil {
		change(k)
	}
	der, err := asn1.Marshal(*k)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func pkcs8(t *testing.T, oid asn1.ObjectIdentifier, key []byte) []byte {
	t.Helper()
	k := pkcs8Key{PrivateKey: key}
	k.Algorithm.Algorithm = oid
	der, err := asn1.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestRSANumbers checks that keys are refused by their size, without computing
// with them.
func TestRSANumbers(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // small keys are read
	if err != nil {
		t.Fatal(err)
	}
	valid := x509.MarshalPKCS1PrivateKey(key)
	onCurve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := x509.MarshalPKCS8PrivateKey(onCurve)
	if err != nil {
		t.Fatal(err)
	}
	const tooLarge, noKey = "and at most 8192 are allowed", "is not an RSA key"
	for name, tt := range map[string]struct {
		der  []byte
		want string
	}{
		"PKCS #1":                     {valid, ""},
		"PKCS #8":                     {pkcs8(t, oidRSA, valid), ""},
		"8192 bits":                   {pkcs1(t, 8192, nil), ""},
		"8193 bits":                   {pkcs1(t, 8193, nil), tooLarge},
		"32768 bits":                  {pkcs1(t, 32768, nil), tooLarge},
		"32768 bits in PKCS #8":       {pkcs8(t, oidRSA, pkcs1(t, 32768, nil)), tooLarge},
		"a million bits":              {pkcs1(t, 1_000_000, nil), tooLarge},
		"a large prime":               {pkcs1(t, 8192, func(k *pkcs1Key) { k.P.Lsh(k.P, 1) }), noKey},
		"a prime larger than the key": {pkcs1(t, 2048, func(k *pkcs1Key) { k.Q = new(big.Int).Lsh(k.N, 1) }), noKey},
		"a large exponent":            {pkcs1(t, 2048, func(k *pkcs1Key) { k.D = new(big.Int).Lsh(k.N, 1) }), noKey},
		"a large coefficient":         {pkcs1(t, 2048, func(k *pkcs1Key) { k.Qi = new(big.Int).Lsh(k.N, 1) }), noKey},
		"a negative number":           {pkcs1(t, 2048, func(k *pkcs1Key) { k.P.Neg(k.P) }), noKey},
		"zero":                        {pkcs1(t, 2048, func(k *pkcs1Key) { k.Q.SetInt64(0) }), noKey},
		"several primes":              {pkcs1(t, 2048, func(k *pkcs1Key) { k.Version = 1 }), noKey},
		"a key on a curve":            {ec, noKey},
		"another algorithm":           {pkcs8(t, asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}, valid), noKey},
		"a key within a key":          {pkcs8(t, oidRSA, pkcs8(t, oidRSA, valid)), noKey},
		"cut off":                     {valid[:len(valid)-1], noKey},
		"nothing":                     {nil, noKey},
	} {
		_, err := rsaNumbers(tt.der)
		if tt.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// TestReadRSAKey checks that a key whose factors are not prime is refused before
// crypto/x509 reads it: for 32,768 bits that took seven seconds.
func TestReadRSAKey(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // small keys are read
	if err != nil {
		t.Fatal(err)
	}
	valid := x509.MarshalPKCS1PrivateKey(key)
	for name, der := range map[string][]byte{"PKCS #1": valid, "PKCS #8": pkcs8(t, oidRSA, valid)} {
		if got, err := readRSAKey(der); err != nil || !got.Equal(key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, tt := range map[string]struct {
		der  []byte
		want string
	}{
		"both even":     {pkcs1(t, 2048, nil), "not prime"},
		"one prime":     {pkcs1(t, 1024, func(k *pkcs1Key) { k.P = key.Primes[0] }), "not prime"},
		"wrong numbers": {pkcs1(t, 1024, func(k *pkcs1Key) { k.P, k.Q = key.Primes[0], key.Primes[1] }), "not a valid RSA key"},
		"too large":     {pkcs1(t, 8193, nil), "at most 8192"},
	} {
		if _, err := readRSAKey(tt.der); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
