package services

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// signedJWT returns a JSON Web Token in compact form (RFC 7519). It is signed with
// RS256 or, if the key is on the curve P-256, with ES256 (RFC 7518, section 3).
// keyID may be empty.
func signedJWT(key crypto.Signer, keyID string, claims any) (string, error) {
	header := map[string]string{"typ": "JWT", "alg": "RS256"}
	if keyID != "" {
		header["kid"] = keyID
	}
	if _, ok := key.(*ecdsa.PrivateKey); ok {
		header["alg"] = "ES256"
	}
	var text string
	for _, part := range []any{header, claims} {
		data, err := json.Marshal(part)
		if err != nil {
			return "", fmt.Errorf("writing a token: %w", err)
		}
		if text != "" {
			text += "."
		}
		text += base64.RawURLEncoding.EncodeToString(data)
	}
	digest := sha256.Sum256([]byte(text))
	var signature []byte
	var err error
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		r, s, e := ecdsa.Sign(rand.Reader, k, digest[:])
		if err = e; err == nil {
			signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}
	case *rsa.PrivateKey:
		signature, err = rsa.SignPKCS1v15(nil, k, crypto.SHA256, digest[:])
	default:
		err = fmt.Errorf("no algorithm for keys of type %T", key)
	}
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
