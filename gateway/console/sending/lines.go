// Package sending has the lines and addresses with which programs send to a key.
package sending

import (
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/docs"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/qrcode"
)

// keepOut is the address of the page that keeps tokens out of access logs.
const keepOut = docs.Address + "tokens.md#keep-it-out-of-the-log"

// Header returns the header with the token of a key. Behind a login of the server, that takes Authorization.
func Header(login bool) (name, value string) {
	if login {
		return "X-Gotify-Key", "$TOKEN"
	}
	return "Authorization", "Bearer $TOKEN"
}

// CurlOptions returns the options of curl with which it may send to a key. log is the address of the page
// that keeps the token out of access logs; "" if they have none.
func CurlOptions(k *site.Key, login bool) (options, log string) {
	if login {
		options, log = " -u USER:PASSWORD", keepOut
	}
	if len(k.Tokens) == 0 {
		return options, ""
	}
	name, value := Header(login)
	return options + ` -H "` + name + ": " + value + `"`, log
}

// Lines returns lines for programs that send to a key, with the address at which the client
// of r reaches the site. login means that the server asks for a login first.
func Lines(r *http.Request, k *site.Key, login bool) []view.CopiedLine {
	scheme, host := httpapi.SiteAddress(r)
	at := host + httpapi.StrippedPrefix(r) + "/" + k.Name // for Apprise
	notify := KeyURL(r, k)
	token := len(k.Tokens) > 0
	curl, log := CurlOptions(k, login)
	curl = "curl -f" + curl
	user := "" // for the host
	if login {
		user = "USER:PASSWORD@"
	}
	apprise := user + at
	httpConfig := ""
	switch {
	case login:
		httpConfig = "        http_config:\n          basic_auth:\n            username: USER\n            password: PASSWORD\n"
		if token {
			httpConfig += "          http_headers:\n            X-Gotify-Key:\n              secrets: [\"$TOKEN\"]\n"
			apprise += "?+X-Gotify-Key=$TOKEN"
		}
	case token:
		httpConfig = "        http_config:\n          authorization:\n            credentials: \"$TOKEN\"\n"
		apprise = "any:$TOKEN@" + at
	}
	alertmanager := view.CopiedLine{
		Name: "Alertmanager", Note: "Into alertmanager.yml.", Log: log,
		Text: "receivers:\n  - name: " + k.Name + "\n    webhook_configs:\n      - url: \"" + notify + "/alertmanager\"\n" + httpConfig,
	}
	if login && token {
		alertmanager.Note += " It needs Alertmanager 0.28 or later."
	}
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
	lines := []view.CopiedLine{
		{Name: "curl", Text: curl + ` -d "backup done" ` + notify, Log: log},
		{
			Name: "curl, with a title and a type", Log: log,
			Text: curl + ` -H "Title: Disk full" -d "/data has 2 GB left" "` + notify + `?type=failure"`,
		},
		{
			Name: "cron", Note: "A line of a crontab: a message comes only if the command fails.", Log: log,
			Text: "0 3 * * * /usr/local/bin/backup || " + strings.Replace(curl, "-f", "-fsS", 1) +
				` -d "backup failed on $(hostname)" "` + notify + `?type=failure"`,
		},
		{
			Name: "apprise", Text: `apprise -b "backup done" "` + strings.Replace(scheme, "http", "apprise", 1) + "://" + apprise + `"`,
			Note: "Programs that know Apprise take the same URL.", Log: log,
		},
		{Name: "ntfy", Text: strings.Replace(curl, " -f", "", 1) + ` -d "backup done" ` + notify + "/ntfy/alerts", Note: ntfy, Log: log},
		alertmanager,
		{
			Name: "Uptime Kuma", Text: strings.Replace(notify, "://", "://"+user, 1) + "/uptime_kuma",
			Note: "Settings, Notifications, Webhook: the Post URL, with the content type application/json.",
		},
	}
	if token {
		name, value := Header(login)
		lines = append(lines, view.CopiedLine{
			Name: "Uptime Kuma, with the token", Text: `{"` + name + `": "` + value + `"}`, Log: log,
			Note: "Below the Post URL: Additional Headers.",
		})
	}
	return lines
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
