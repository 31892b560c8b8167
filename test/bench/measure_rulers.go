//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// What a ruler posts.
const (
	ruledAlerts  = 10_000
	ruledGroups  = 200
	ruledBatch   = 64 // alerts of a request, as Prometheus sends them
	ruledMinutes = 6
)

// rulers measures the share of a core that alerts cost which a ruler posts each minute. The
// first minute, in which they are new and told, does not count.
func (b *bench) rulers() error {
	c, err := b.start(b.binary, siteConfig{keys: b.destinationKey("one", "", 1), global: b.queueOption("rulers")})
	if err != nil {
		return err
	}
	defer c.stop()
	minute := func() error {
		end := time.Now().Add(time.Minute)
		if err := postRuled(c); err != nil {
			return err
		}
		time.Sleep(time.Until(end))
		return nil
	}
	if err := minute(); err != nil {
		return err
	}
	before, err := c.usage(true)
	if err != nil {
		return err
	}
	begin := time.Now()
	for range ruledMinutes {
		if err := minute(); err != nil {
			return err
		}
	}
	took := time.Since(begin)
	after, err := c.usage(false)
	if err != nil {
		return err
	}
	fmt.Printf("%d alerts in %d groups, posted each minute: %.2f %% of a core over %d minutes, %.1f MiB in use\n", ruledAlerts, ruledGroups, 100*(after.cpu-before.cpu).Seconds()/took.Seconds(), ruledMinutes, before.settled/(1<<20))
	return nil
}

// postRuled posts all alerts as Prometheus does: one rule after the other.
func postRuled(c *caddy) error {
	now := time.Now().UTC()
	for from := 0; from < ruledAlerts; from += ruledBatch {
		var alerts []any
		for i := from; i < min(from+ruledBatch, ruledAlerts); i++ {
			alerts = append(alerts, map[string]any{
				"labels":      map[string]string{"alertname": fmt.Sprintf("Rule%d", i/(ruledAlerts/ruledGroups)), "instance": fmt.Sprintf("host%d.example.org:9100", i), "job": "node", "severity": "warning"},
				"annotations": map[string]string{"summary": fmt.Sprintf("The disk of host%d is 95 %% full", i), "runbook_url": "https://runbooks.example.org/disk"},
				"startsAt":    now.Format(time.RFC3339), "endsAt": now.Add(4 * time.Minute).Format(time.RFC3339), "generatorURL": "http://prometheus.example.org/graph?g0.expr=disk",
			})
		}
		body, err := json.Marshal(alerts)
		if err != nil {
			return err
		}
		resp, err := http.Post("http://"+c.gateway+"/notify/one/prometheus/api/v2/alerts", "application/json", strings.NewReader(string(body)))
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the alerts of a ruler: status %d", resp.StatusCode)
		}
	}
	return nil
}
