package console

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/qrcode"
)

// SendingLines returns what programs use to send to a key, with the address at which
// the client of r reaches the site.
func SendingLines(r *http.Request, k *site.Key) []view.CopiedLine {
	scheme, host := httpapi.SiteAddress(r)
	prefix := httpapi.StrippedPrefix(r)
	notify := keyURL(r, k)
	token := len(k.Tokens) > 0
	with := func(withToken, without string) string {
		if token {
			return withToken
		}
		return without
	}
	header := with(` -H "Authorization: Bearer $TOKEN"`, "")
	curl := "curl -f" + header
	apprise := "apprise"
	if scheme == "https" {
		apprise = "apprises"
	}
	alertmanager := "receivers:\n  - name: " + k.Name + "\n    webhook_configs:\n      - url: \"" + notify + "/alertmanager\"\n"
	if token {
		alertmanager += "        http_config:\n          authorization:\n            credentials: \"$TOKEN\"\n"
	}
	return []view.CopiedLine{
		{Name: "curl", Text: curl + ` -d "backup done" ` + notify},
		{Name: "curl, with a title and a type", Text: curl + ` -H "Title: Disk full" -d "/data has 2 GB left" "` + notify + `?type=failure"`},
		{Name: "cron", Text: "0 3 * * * /usr/local/bin/backup || curl -fsS" + header + ` -d "backup failed on $(hostname)" "` + notify + `?type=failure"`, Note: "A line of a crontab: a message comes only if the command fails."},
		{Name: "apprise", Text: `apprise -b "backup done" "` + apprise + "://" + with("any:$TOKEN@", "") + host + prefix + "/" + k.Name + `"`, Note: "Programs that know Apprise take the same URL."},
		{Name: "ntfy", Text: "curl" + header + ` -d "backup done" ` + notify + "/ntfy/alerts", Note: "For programs that speak to ntfy: the server is " + notify + "/ntfy, with any topic" + with(" and the token as access token.", ".")},
		{Name: "Alertmanager", Text: alertmanager, Note: "Into alertmanager.yml."},
		{Name: "Uptime Kuma", Text: notify + "/uptime_kuma" + with("?token=$TOKEN", ""), Note: "Settings, Notifications, Webhook: the Post URL, with the content type application/json."},
	}
}

// mobileLine returns the address that Apprise Mobile scans, as /qr/{KEY} has it.
func mobileLine(r *http.Request, public string, k *site.Key) view.CopiedLine {
	address, login := httpapi.AppriseAddress(r, public, k.Name, len(k.Tokens) > 0)
	l := view.CopiedLine{Name: "Apprise Mobile", Text: address, Note: "Scan it with the app."}
	switch {
	case login:
		l.Note = "Scan it with the app, and enter your user and password of this site there."
	case len(k.Tokens) > 0:
		l.Note = "Scan it with the app, and enter a token of the key as the password there."
	}
	if code, err := qrcode.New(address); err == nil { // an address that is too long has the text alone
		l.Code = &view.QRCode{Size: code.Size, Path: code.Path()}
	}
	return l
}

// keyURL returns the URL of a key at which the client of r reaches it.
func keyURL(r *http.Request, k *site.Key) string {
	scheme, host := httpapi.SiteAddress(r)
	return scheme + "://" + host + httpapi.StrippedPrefix(r) + site.PathOf(site.RouteNotifyKey, k.Name)
}
