package services

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// oauth1 signs requests with the secrets of an app and of its user (RFC 5849).
type oauth1 struct{ key, secret, token, tokenSecret string }

// header returns the value of the header Authorization. query has the parameters
// of the address and of the form in the body.
func (o *oauth1) header(method, address string, query url.Values) string {
	return o.headerWith(method, address, query, rand.Text(), time.Now())
}

// headerWith is header with a given nonce and time.
func (o *oauth1) headerWith(method, address string, query url.Values, nonce string, now time.Time) string {
	own := [][2]string{
		{"oauth_consumer_key", o.key},
		{"oauth_nonce", nonce},
		{"oauth_signature_method", "HMAC-SHA1"},
		{"oauth_timestamp", strconv.FormatInt(now.Unix(), 10)},
		{"oauth_token", o.token},
		{"oauth_version", "1.0"},
	}
	var pairs, fields []string
	for _, p := range own {
		pairs = append(pairs, oauth1Escape(p[0])+"="+oauth1Escape(p[1]))
		fields = append(fields, oauth1Escape(p[0])+`="`+oauth1Escape(p[1])+`"`)
	}
	for name, list := range query {
		for _, v := range list {
			pairs = append(pairs, oauth1Escape(name)+"="+oauth1Escape(v))
		}
	}
	slices.Sort(pairs)
	base := method + "&" + oauth1Escape(address) + "&" + oauth1Escape(strings.Join(pairs, "&"))
	mac := hmac.New(sha1.New, []byte(oauth1Escape(o.secret)+"&"+oauth1Escape(o.tokenSecret)))
	mac.Write([]byte(base))
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return "OAuth " + strings.Join(append(fields, `oauth_signature="`+oauth1Escape(signature)+`"`), ", ")
}

// oauth1Escape escapes all except unreserved characters (RFC 5849, section 3.6).
func oauth1Escape(s string) string { return percent.Encode(s, "") }
