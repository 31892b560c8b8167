// Package sending has the lines and addresses with which programs send to a key.
package sending

import (
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/qrcode"
)

// Lines returns lines for programs that send to a key, with the address at which the client
// of r reaches the site. login means that the server asks for a login first. The login uses the
// header Authorization, so the token of the key is in the query.
func Lines(r *http.Request, k *site.Key, login bool) []view.CopiedLine {
	scheme, host := httpapi.SiteAddress(r)
	at := host + httpapi.StrippedPrefix(r) + "/" + k.Name // for Apprise
	notify := KeyURL(r, k)
	token := len(k.Tokens) > 0
	var auth, only, more, user string // auth is for curl, only for an otherwise empty query, more for another, user for the host
	apprise, httpConfig := at, ""
	switch {
	case login && token:
		auth, only, more, user = " -u USER:PASSWORD", "?token=$TOKEN", "&token=$TOKEN", "USER:PASSWORD@"
		apprise += "?+X-Gotify-Key=$TOKEN"
	case login:
		auth, user = " -u USER:PASSWORD", "USER:PASSWORD@"
	case token:
		auth, only = ` -H "Authorization: Bearer $TOKEN"`, "?token=$TOKEN"
		apprise = "any:$TOKEN@" + apprise
	}
	switch {
	case login:
		httpConfig = "        http_config:\n          basic_auth:\n            username: USER\n            password: PASSWORD\n"
	case token:
		httpConfig = "        http_config:\n          authorization:\n            credentials: \"$TOKEN\"\n"
	}
	quoted := func(address string) string { // a shell has no other use for these addresses without a query
		if strings.ContainsAny(address, "?&$") {
			return `"` + address + `"`
		}
		return address
	}
	inQuery := "" // the token that no header has
	if login {
		inQuery = only
	}
	alertmanager := "receivers:\n  - name: " + k.Name + "\n    webhook_configs:\n      - url: \"" + notify + "/alertmanager" + inQuery +
		"\"\n" + httpConfig
	ntfy := "For programs that speak to ntfy: the server is " + notify + "/ntfy, with any topic"
	switch {
	case login && token:
		ntfy += ". They send only one login, so exclude this address from the login of the site; the token protects it."
	case login:
		ntfy += " and the login of the site."
	case token:
		ntfy += " and the token as access token."
	default:
		ntfy += "."
	}
	return []view.CopiedLine{
		{Name: "curl", Text: "curl -f" + auth + ` -d "backup done" ` + quoted(notify+inQuery)},
		{Name: "curl, with a title and a type", Text: "curl -f" + auth + ` -H "Title: Disk full" -d "/data has 2 GB left" "` + notify +
			"?type=failure" + more + `"`},
		{Name: "cron", Text: "0 3 * * * /usr/local/bin/backup || curl -fsS" + auth + ` -d "backup failed on $(hostname)" "` + notify +
			"?type=failure" + more + `"`, Note: "A line of a crontab: a message comes only if the command fails."},
		{
			Name: "apprise", Text: `apprise -b "backup done" "` + strings.Replace(scheme, "http", "apprise", 1) + "://" + user + apprise + `"`,
			Note: "Programs that know Apprise take the same URL.",
		},
		{Name: "ntfy", Text: "curl" + auth + ` -d "backup done" ` + quoted(notify+"/ntfy/alerts"+inQuery), Note: ntfy},
		{Name: "Alertmanager", Text: alertmanager, Note: "Into alertmanager.yml."},
		{
			Name: "Uptime Kuma", Text: strings.Replace(notify, "://", "://"+user, 1) + "/uptime_kuma" + only,
			Note: "Settings, Notifications, Webhook: the Post URL, with the content type application/json.",
		},
	}
}

// MobileLine returns the address that Apprise Mobile scans, the same as at /qr/{KEY}.
func MobileLine(r *http.Request, public string, k *site.Key) view.CopiedLine {
	address, login := httpapi.AppriseAddress(r, public, k.Name, len(k.Tokens) > 0)
	l := view.CopiedLine{Name: "Apprise Mobile", Text: address, Note: "Scan it with the app."}
	switch {
	case login:
		l.Note = "Scan it with the app, and enter your user and password of this site there."
	case len(k.Tokens) > 0:
		l.Note = "Scan it with the app, and enter a token of the key as the password there."
	}
	if code, err := qrcode.New(address); err == nil { // without a code if the address is too long
		l.Code = &view.QRCode{Size: code.Size, Path: code.Path()}
	}
	return l
}

// KeyURL returns the URL at which the client of r reaches a key.
func KeyURL(r *http.Request, k *site.Key) string {
	scheme, host := httpapi.SiteAddress(r)
	return scheme + "://" + host + httpapi.StrippedPrefix(r) + site.PathOf(site.RouteNotifyKey, k.Name)
}
