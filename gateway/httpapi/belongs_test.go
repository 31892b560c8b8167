package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestFoundByID checks, for every route with an ID, that a user and manager of another site has no
// rights there, even if the other site has a key of the same name. The public links of incidents
// and questions work at every site, without further rights.
func TestFoundByID(t *testing.T) {
	t.Parallel()
	dir, push, pager := t.TempDir(), gatewaytest.NewPushService(t), gatewaytest.NewPager(t, http.StatusOK)
	gatewaytest.InBubble(t, func(t *testing.T) {
		o := gatewaytest.PushOptions()
		k := gatewaytest.Key("k", pager.NotifyURL())
		k.Rules, k.Inbox = &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}, time.Hour
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: o, Queue: &outbox.Settings{Path: dir},
			Site: site.Options{Keys: []site.KeyOptions{k}, Managers: gatewaytest.Everybody(), Page: new(true), Stateless: new(true)},
		})
		phone := push.Subscribe(t, g, "phone")
		time.Sleep(time.Minute) // until all know the device
		id := func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
		ask := func(fields string) (link string) {
			t.Helper()
			body := `{"title":"Deploy?","body":"b","ask":{"options":["a","b"],"timeout":"1h"` + fields + `}}`
			got := g.Post("/notify/k", gatewaytest.TypeJSON, body)
			if got.Status != http.StatusAccepted {
				t.Fatalf("%d %s", got.Status, got.Body)
			}
			time.Sleep(time.Minute)
			return strings.TrimPrefix(pager.Got()[pager.Count()-1].AnswerURL, o.PublicURL)
		}
		open, login := ask(""), ask(`,"login":true`)
		message := g.PostForm("/notify/k", "body=disk&type=failure&incident=db1&send_at=1h").JSON(t).ID
		g.PostForm("/notify/k", "title=Disk+full&body=b&type=failure&incident=db1")
		time.Sleep(time.Minute)
		var list alerting.IncidentsJSON
		if err := json.Unmarshal([]byte(g.Do(gatewaytest.NewRequest(http.MethodGet, site.RouteIncidents, "")).Body), &list); err != nil ||
			len(list.Incidents) != 1 {
			t.Fatalf("%+v %v", list, err)
		}
		incident := list.Incidents[0].ID
		silence := g.Post("/notify/k/silences", gatewaytest.TypeJSON, `{"for":"1h","title":"x"}`).Header.Get("Location")

		// The value of {ID}, the posted forms, and the status at another site.
		rows := map[string]struct {
			id     string
			forms  []string
			header []string
			want   int
		}{
			httpapi.RouteMessage:        {id: message, want: http.StatusNotFound},
			httpapi.RouteConsoleMessage: {id: message, forms: []string{"retry", "drop"}, want: http.StatusNotFound},
			httpapi.RouteIncident:       {id: incident, want: http.StatusOK},
			httpapi.RouteClientMessage:  {id: message, want: http.StatusNotFound},
			httpapi.RouteClientIncident: {id: incident, want: http.StatusOK},
			httpapi.RouteClientAsk:      {id: id(open), want: http.StatusOK},
			httpapi.RouteConsoleIncident: {
				id: incident, forms: []string{"do=acknowledge", "do=resolve", "do=silence&for=1h"},
				want: http.StatusNotFound,
			},
			httpapi.RouteAsk:        {id: id(open), want: http.StatusOK},
			httpapi.RouteConsoleAsk: {id: id(login), forms: []string{"answer=a"}, want: http.StatusNotFound},
			httpapi.RouteSilence:    {id: id(silence), want: http.StatusNotFound},
			httpapi.RouteDevice: {
				id: phone.ID, header: []string{"Authorization", "Bearer " + phone.Secret},
				want: http.StatusNotFound,
			},
			httpapi.RouteDeviceTest: {
				id: phone.ID, header: []string{"Authorization", "Bearer " + phone.Secret},
				want: http.StatusNotFound,
			},
			httpapi.RouteReceipts: {id: phone.ID, want: http.StatusNotFound},
		}
		at := func(path, method, form string, header ...string) gatewaytest.Reply {
			kind := gatewaytest.TypeForm
			if strings.HasPrefix(form, "{") {
				kind = gatewaytest.TypeJSON
			}
			return g.Do(gatewaytest.As(gatewaytest.NewRequest(method, path, form,
				append([]string{"Content-Type", kind}, header...)...), "mallory"))
		}
		for _, spec := range httpapi.RouteSpecs() {
			if !strings.Contains(spec.Pattern, "{ID}") {
				continue
			}
			row, ok := rows[spec.Pattern]
			if !ok {
				t.Errorf("%s: the test does not know what its ID is of", spec.Pattern)
				continue
			}
			path := strings.NewReplacer("{ID}", row.id, "{KEY}", "k").Replace(spec.Pattern)
			for _, method := range spec.Methods {
				forms := []string{""}
				if method == http.MethodPost {
					forms = row.forms
				}
				if method == http.MethodPut || spec.Pattern == httpapi.RouteReceipts {
					forms = []string{`{"receipt":"x"}`}
				}
				for _, form := range forms {
					target := path
					if spec.Pattern == httpapi.RouteConsoleMessage && form != "" {
						target, form = path+"?"+form, ""
					}
					g.SetSiteID("other.test")
					got := at(target, method, form, row.header...)
					g.SetSiteID(gatewaytest.SiteID)
					if got.Status != row.want &&
						!(row.want == http.StatusNotFound && got.Status == http.StatusUnauthorized) { // of a device
						t.Errorf("another site: %s %s %s: %d %s, want %d", method, target, form, got.Status, got.Body, row.want)
					}
				}
				if spec.Pattern == httpapi.RouteReceipts || method != http.MethodGet {
					continue
				}
				if got := at(path, method, "", row.header...); got.Status != http.StatusOK {
					t.Errorf("its own site: %s %s: %d %s", method, path, got.Status, got.Body)
				}
			}
		}

		// The public links.
		g.SetSiteID("other.test")
		page := at(site.RouteIncidents+"/"+incident, http.MethodGet, "", "Accept", "text/html").Body
		for _, told := range []string{"Disk full", `name="by"`} {
			if !strings.Contains(page, told) {
				t.Errorf("the page of the incident at another site lacks %s", told)
			}
		}
		for _, secret := range []string{" got the failure", `value="silence"`} {
			if strings.Contains(page, secret) {
				t.Errorf("the page of the incident at another site has %s", secret)
			}
		}
		for _, tt := range []struct {
			path, form string
			status     int
			want       string
		}{
			{login[:len(login)-1] + "x", "answer=a", http.StatusNotFound, ""},
			{site.RouteAsks + "/" + id(login), "answer=a", http.StatusNotFound, ""},
			{site.RouteConsoleAsks + "/" + id(open), "answer=a", http.StatusNotFound, ""},
			{site.RouteIncidents + "/" + incident, "do=silence&for=1h", http.StatusBadRequest, "another site"},
			{site.RouteIncidents + "/" + incident, "by=Eve", http.StatusOK, `"by":"Eve (typed)"`},
			{site.RouteIncidents + "/" + incident, "do=resolve&by=Eve", http.StatusOK, `"resolved_by":"Eve (typed)"`},
			{open, "answer=a&by=Eve", http.StatusOK, `"by":"Eve (typed)"`},
		} {
			if got := at(tt.path, http.MethodPost, tt.form); got.Status != tt.status || !strings.Contains(got.Body, tt.want) ||
				strings.Contains(got.Body, "mallory") {
				t.Errorf("another site: %s %s: %d %s, want %d %s", tt.path, tt.form, got.Status, got.Body, tt.status, tt.want)
			}
		}
		g.SetSiteID(gatewaytest.SiteID)
		if got := at(site.RouteConsoleAsks+"/"+id(login), http.MethodPost, "answer=a"); got.Status != http.StatusOK ||
			!strings.Contains(got.Body, `"by":"mallory"`) {
			t.Errorf("its own site: %d %s", got.Status, got.Body)
		}
	})
}
