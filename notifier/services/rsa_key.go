package services

import (
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
)

// maxRSABits is the maximum size of an RSA key. Key files of service accounts have
// 2048 bits.
const maxRSABits = 8192

var (
	errNoRSAKey = errors.New("is not an RSA key")
	oidRSA      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
)

// pkcs8Key is a PrivateKeyInfo (RFC 5208, section 5).
type pkcs8Key struct {
	Version    int
	Algorithm  pkix.AlgorithmIdentifier
	PrivateKey []byte
	// Attributes follow; encoding/asn1 ignores them.
}

// pkcs1Key is an RSAPrivateKey with two primes (RFC 8017, appendix A.1.2).
type pkcs1Key struct {
	Version             int
	N                   *big.Int
	E                   int
	D, P, Q, Dp, Dq, Qi *big.Int
}

// rsaNumbers decodes an RSA key in PKCS #8 or PKCS #1 and checks the sizes of its
// numbers. It computes nothing, unlike crypto/x509, whose work grows with the
// cube of the size.
func rsaNumbers(der []byte) (*pkcs1Key, error) {
	var outer pkcs8Key
	if _, err := asn1.Unmarshal(der, &outer); err == nil {
		if !outer.Algorithm.Algorithm.Equal(oidRSA) {
			return nil, errNoRSAKey
		}
		der = outer.PrivateKey
	}
	var key pkcs1Key
	if _, err := asn1.Unmarshal(der, &key); err != nil || key.Version != 0 {
		return nil, errNoRSAKey
	}
	bits := key.N.BitLen()
	if bits > maxRSABits {
		return nil, fmt.Errorf("has %d bits, and at most %d are allowed", bits, maxRSABits)
	}
	for _, n := range []*big.Int{key.N, key.D, key.P, key.Q, key.Dp, key.Dq, key.Qi} {
		if n.Sign() <= 0 || n.BitLen() > bits {
			return nil, errNoRSAKey
		}
	}
	if max(key.P.BitLen(), key.Q.BitLen()) > maxRSABits/2 {
		return nil, errNoRSAKey
	}
	return &key, nil
}

// readRSAKey reads an RSA key in PKCS #8 or PKCS #1. For a large key it takes a
// second; call it in [notifier.Client.Compute].
func readRSAKey(der []byte) (*rsa.PrivateKey, error) {
	numbers, err := rsaNumbers(der)
	if err != nil {
		return nil, fmt.Errorf("the private key %w", err)
	}
	const rounds = 2 // and a Baillie-PSW test; an error harms only the owner of the key
	if !numbers.P.ProbablyPrime(rounds) || !numbers.Q.ProbablyPrime(rounds) {
		return nil, errors.New("the private key has factors that are not prime; create another key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(der)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("the private key is not a valid RSA key; create another key")
	}
	return key, nil
}
