package services

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// The example of https://docs.x.com/fundamentals/authentication/oauth-1-0a/creating-a-signature
func TestOAuth1Signature(t *testing.T) {
	o := &oauth1{
		key: "xvz1evFS4wEEPTGEFPHBog", secret: "kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw",
		token: "370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb", tokenSecret: "LswwdoUaIvS8ltyTt5jkRh4J50vUPVVHtR2YPi5kE",
	}
	query := url.Values{"include_entities": {"true"}, "status": {"Hello Ladies + Gentlemen, a signed OAuth request!"}}
	got := o.headerWith("POST", "https://api.twitter.com/1.1/statuses/update.json", query,
		"kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg", time.Unix(1318622958, 0))
	for _, want := range []string{
		`OAuth oauth_consumer_key="xvz1evFS4wEEPTGEFPHBog"`, `oauth_timestamp="1318622958"`,
		`oauth_signature="hCtSmYh%2BiHYCEqBWrE7C7hYmtUk%3D"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in %s", want, got)
		}
	}
}
