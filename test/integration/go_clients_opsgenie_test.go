package integration

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/opsgenie/opsgenie-go-sdk-v2/alert"
	opsgenie "github.com/opsgenie/opsgenie-go-sdk-v2/client"
	"github.com/opsgenie/opsgenie-go-sdk-v2/heartbeat"
	"github.com/sirupsen/logrus"
)

// opsgenieConfig returns the settings of the SDK, which takes a host and no path.
func (g *clientGateway) opsgenieConfig(token string) *opsgenie.Config {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return &opsgenie.Config{ApiKey: token, OpsGenieAPIURL: opsgenie.ApiUrl(g.own), Logger: quiet}
}

// TestOpsgenieGo opens, acknowledges and closes alerts with the SDK, which leaves slashes
// of an alias as they are.
func TestOpsgenieGo(t *testing.T) {
	t.Parallel()
	g := newClientGateway(t)
	alerts, err := alert.NewClient(g.opsgenieConfig("secret"))
	must(t, err)
	for _, alias := range []string{"disk", "db1/disk", "https://web1.example.com//health", "a b/%41?c"} {
		create := &alert.CreateAlertRequest{Message: "91% full", Alias: alias, Description: "of " + alias, Priority: alert.P3}
		_, err := alerts.Create(t.Context(), create)
		must(t, err)
		opened := g.hook.next(t)
		if opened.Type != "warning" || opened.Title != "91% full" || opened.Message != "of "+alias || opened.Incident == "" {
			t.Errorf("%s: arrived %+v", alias, opened)
		}
		_, err = alerts.Create(t.Context(), create)
		must(t, err)
		_, err = alerts.Acknowledge(t.Context(), &alert.AcknowledgeAlertRequest{IdentifierType: alert.ALIAS, IdentifierValue: alias, User: "eve"})
		must(t, err)
		if p := g.hook.next(t); p.Type != "info" || p.Title != "Acknowledged: 91% full" || p.Incident != opened.Incident {
			t.Errorf("%s: arrived %+v, after %+v", alias, p, opened)
		}
		_, err = alerts.Close(t.Context(), &alert.CloseAlertRequest{IdentifierType: alert.ALIAS, IdentifierValue: alias})
		must(t, err)
		if p := g.hook.next(t); p.Type != "success" || p.Message != "Closed: 91% full" || p.Incident != opened.Incident {
			t.Errorf("%s: arrived %+v, after %+v", alias, p, opened)
		}
	}
	wrong, err := alert.NewClient(g.opsgenieConfig("wrong"))
	must(t, err)
	g.refused(t, "401", func() error {
		_, err := wrong.Create(t.Context(), &alert.CreateAlertRequest{Message: "91% full"})
		return err
	})
}

// TestOpsgenieGoHeartbeat pings a beat that the key expects, and one that it does not.
func TestOpsgenieGoHeartbeat(t *testing.T) {
	t.Parallel()
	g := newClientGateway(t)
	beats, err := heartbeat.NewClient(g.opsgenieConfig("secret"))
	must(t, err)
	answer, err := beats.Ping(t.Context(), "nightly")
	must(t, err)
	if !strings.HasPrefix(answer.Message, "PONG") {
		t.Errorf("answer %+v", answer)
	}
	g.refused(t, "expect", func() error {
		_, err := beats.Ping(t.Context(), "hourly")
		if e, ok := err.(*opsgenie.ApiError); !ok || e.StatusCode != http.StatusNotFound {
			t.Errorf("error %#v", err)
		}
		return err
	})
}
