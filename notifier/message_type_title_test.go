package notifier

import "testing"

// TestTypeOfTitle checks which titles state a type.
func TestTypeOfTitle(t *testing.T) {
	for want, subjects := range map[Type][]string{
		Success: {
			"[RESOLVED] DiskFull (nas critical)", "[OK] Disk alert", "[Resolved] DiskFull", "[RESOLVED]DiskFull", "✅ [RESOLVED] DiskFull",
			"[CRITICAL] [RESOLVED] DiskFull", "[RESOLVED:2] DiskFull", "[EXTERNAL] [RESOLVED] DiskFull", "[RESOLVED] Problem: disk",
			"[Shop] [✅ Up] 200 - OK", "[Web [prod]] [✅ Up] 200 - OK", "[RECOVERY] disk on nas is OK!",
			"** RECOVERY Service Alert: nas/Disk is OK **", "** RECOVERY Host Alert: nas is UP **",
			"Resolved: Disk is full", "Resolved in 5m 3s: Disk is full", "OK: Disk is full", "UP | nas", "RECOVERY: disk",
			"Checkmk: nas/Disk CRIT -> OK", "Check_MK: nas - DOWN -> UP", `OK: "disk" in EU (Ireland)`,
		},
		Failure: {
			"[FIRING:1] DiskFull (nas critical)", "[FIRING:1, RESOLVED:2] DiskFull",
			"[FIRING: 1] DiskFull", "[Alerting] Disk alert", "[CRITICAL] disk",
			"[RESOLVED] [FIRING:1] DiskFull", "[Shop] [🔴 Down] connect ECONNREFUSED", "[PROBLEM] disk on nas is CRITICAL!", "[Problem] nas is DOWN!",
			"** PROBLEM Service Alert: nas/Disk is CRITICAL **",
			"** PROBLEM Host Alert: nas is DOWN **", "** PROBLEM Service Alert: nas/Disk is UNKNOWN **",
			"Problem: Disk is full", "Updated problem in 2h: Disk is full", "PROBLEM: Disk is OK", "DOWN | nas", "🔴 DOWN | nas",
			"Checkmk: nas/Disk OK -> CRIT", "Check_MK: nas - UP -> DOWN",
			`ALARM: "disk" in EU (Ireland)`, "[zabbix] Problem: Disk is full", "Critical: disk",
		},
		Warning: {
			"[FIRING:1] [WARNING] DiskFull", "[WARNING] disk", "Warning: disk", "[PROBLEM] disk on nas is WARNING!",
			"** PROBLEM Service Alert: nas/Disk is WARNING **", "Checkmk: nas/Disk OK -> WARN",
		},
		"": {
			"", "[", "[]", "[No Data] Disk alert", "[Shop] [⚠️ Test] Testing",
			"Re: [RESOLVED] DiskFull", "Fwd: Problem: disk", "DiskFull [RESOLVED]",
			"Everything is OK", "The nas is down", "Up to date", "Down the road: a story",
			"Problem with the disk: see below", "OK for now: see below",
			"** ACKNOWLEDGEMENT Service Alert: nas/Disk is CRITICAL **",
			"** FLAPPINGSTART Service Alert: nas/Disk is WARNING **", "[ACKNOWLEDGEMENT] disk on nas is CRITICAL!",
			"[CUSTOM] disk on nas is OK!", "Error: backup", "Failed: backup",
			"Closed: ticket 7", "Alert: disk", "NEW | nas", "INSUFFICIENT_DATA: \"disk\"",
			"Cron <root@nas> backup", "Checkmk: nas/Disk OK -> UNKNOWN", "Checkmk: nas/Disk Acknowledged (CRIT)", "Resolved in principle: disk",
		},
	} {
		for _, subject := range subjects {
			if got := TypeOfTitle(subject); got != want {
				t.Errorf("%s: got %q, want %q", subject, got, want)
			}
		}
	}
}
