package webpush

import (
	"crypto/ecdh"
	"encoding/base64"
	"testing"
)

func base64URL(t *testing.T, s string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The example of RFC 8291, section 5.
func TestWebPushExample(t *testing.T) {
	s := Subscription{Endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV"}
	s.Keys.P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
	s.Keys.Auth = "BTBZMqHH6r4Tts7J_aSIgg"
	if err := s.Parse(); err != nil {
		t.Fatal(err)
	}
	key, err := ecdh.P256().NewPrivateKey(base64URL(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.encryptWith(key, base64URL(t, "DGv6ra1nlYgDCS1FRnbzlw"), []byte("When I grow up, I want to be a watermelon"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_" +
		"yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if text := base64.RawURLEncoding.EncodeToString(got); text != want {
		t.Errorf("encrypted as\n%s, want\n%s", text, want)
	}
}
