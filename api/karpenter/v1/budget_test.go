package v1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBudgetActive(t *testing.T) {
	// The date is a Wednesday.
	at := func(hour, minute, second int) time.Time {
		return time.Date(2026, 1, 7, hour, minute, second, 0, time.UTC)
	}
	hours := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }
	for _, test := range []struct {
		name   string
		budget Budget
		now    time.Time
		want   bool
		fails  bool
	}{
		{"no schedule", Budget{}, at(0, 0, 0), true, false},
		{"just before the hit", Budget{Schedule: new("0 9 * * 3"), Duration: hours(8)}, at(8, 59, 59), false, false},
		{"at the hit", Budget{Schedule: new("0 9 * * 3"), Duration: hours(8)}, at(9, 0, 0), true, false},
		{"just before the end", Budget{Schedule: new("0 9 * * 3"), Duration: hours(8)}, at(16, 59, 59), true, false},
		{"at the end", Budget{Schedule: new("0 9 * * 3"), Duration: hours(8)}, at(17, 0, 0), false, false},
		{"on another day", Budget{Schedule: new("0 9 * * 4"), Duration: hours(8)}, at(10, 0, 0), false, false},
		{"a name", Budget{Schedule: new("@daily"), Duration: hours(1)}, at(0, 30, 0), true, false},
		{"a duration longer than the period", Budget{Schedule: new("@hourly"), Duration: hours(2)}, at(0, 30, 0), true, false},
		{"UTC, wherever the caller is", Budget{Schedule: new("0 9 * * *"), Duration: hours(1)}, at(9, 30, 0).In(time.FixedZone("east", 5*3600)), true, false},
		{"a date that never comes", Budget{Schedule: new("0 0 30 2 *"), Duration: hours(1)}, at(0, 0, 0), false, false},
		{"not cron", Budget{Schedule: new("a b c d e"), Duration: hours(1)}, at(0, 0, 0), false, true},
		{"a zone of its own", Budget{Schedule: new("TZ=Asia/Tokyo 0 9 * * *"), Duration: hours(1)}, at(0, 0, 0), false, true},
		{"schedule without duration", Budget{Schedule: new("@daily")}, at(0, 0, 0), false, true},
		{"duration without schedule", Budget{Duration: hours(1)}, at(0, 0, 0), false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.budget.Active(test.now)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %v and error %v, want %v and an error: %v", got, err, test.want, test.fails)
			}
		})
	}
}

func TestBudgetChanges(t *testing.T) {
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 1, day, hour, minute, 0, 0, time.UTC) }
	spell := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for _, test := range []struct {
		name      string
		budget    Budget
		now, want time.Time
	}{
		{"no schedule", Budget{}, at(7, 0, 0), time.Time{}},
		{"not yet", Budget{Schedule: new("0 9 * * *"), Duration: spell(8 * time.Hour)}, at(7, 8, 0), at(7, 9, 0)},
		{"at the hit", Budget{Schedule: new("0 9 * * *"), Duration: spell(8 * time.Hour)}, at(7, 9, 0), at(7, 17, 0)},
		{"within", Budget{Schedule: new("0 9 * * *"), Duration: spell(8 * time.Hour)}, at(7, 16, 59), at(7, 17, 0)},
		{"at the end", Budget{Schedule: new("0 9 * * *"), Duration: spell(8 * time.Hour)}, at(7, 17, 0), at(8, 9, 0)},
		{"windows overlap", Budget{Schedule: new("0,30 9 * * *"), Duration: spell(45 * time.Minute)}, at(7, 9, 10), at(7, 10, 15)},
		{"windows touch", Budget{Schedule: new("0,30 9 * * *"), Duration: spell(30 * time.Minute)}, at(7, 9, 10), at(7, 10, 0)},
		{"never", Budget{Schedule: new("0 0 30 2 *"), Duration: spell(time.Hour)}, at(7, 0, 0), time.Time{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.budget.Changes(test.now)
			if err != nil || !got.Equal(test.want) {
				t.Errorf("got %v and error %v, want %v", got, err, test.want)
			}
		})
	}
	always := Budget{Schedule: new("@hourly"), Duration: spell(time.Hour)}
	if got, err := always.Changes(at(7, 0, 30)); err != nil || !got.After(at(7, 1, 0)) {
		t.Errorf("always active: %v and error %v, want a time after its first window", got, err)
	}
	if _, err := (&Budget{Schedule: new("x"), Duration: spell(time.Hour)}).Changes(at(7, 0, 0)); err == nil {
		t.Error("no error for an invalid schedule")
	}
}

// TestBudgetChangesIsWhenItTurns compares Changes with calling Active for every minute.
func TestBudgetChangesIsWhenItTurns(t *testing.T) {
	for _, schedule := range []string{"0 9 * * 1-5", "*/20 8-10 * * *", "15 3,4 * * *"} {
		for _, minutes := range []int{10, 20, 25, 60, 90} {
			b := Budget{Schedule: new(schedule), Duration: &metav1.Duration{Duration: time.Duration(minutes) * time.Minute}}
			for hour := range 48 {
				now := time.Date(2026, 1, 9, hour, 7, 0, 0, time.UTC)
				is, _ := b.Active(now)
				want := now
				for turned := is; turned == is; turned, _ = b.Active(want) {
					want = want.Add(time.Minute)
				}
				if got, err := b.Changes(now); err != nil || !got.Equal(want) {
					t.Fatalf("%q for %d minutes at %v: %v and error %v, want %v", schedule, minutes, now, got, err, want)
				}
			}
		}
	}
}

func TestBudgetAllowed(t *testing.T) {
	for _, test := range []struct {
		nodes string
		total int
		want  int
		fails bool
	}{
		{"10%", 100, 10, false}, {"10%", 101, 11, false}, {"10%", 1, 1, false}, {"10%", 0, 0, false}, {"0%", 100, 0, false}, {"100%", 7, 7, false},
		{"0", 5, 0, false}, {"3", 2, 3, false}, {"", 5, 0, true}, {"101%", 5, 0, true}, {"-1", 5, 0, true}, {"many", 5, 0, true}, {"99999999999999999999", 5, 0, true},
	} {
		got, err := (&Budget{Nodes: test.nodes}).Allowed(test.total)
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%q of %d: got %d and error %v, want %d and an error: %v", test.nodes, test.total, got, err, test.want, test.fails)
		}
	}
}

func TestBudgetAppliesTo(t *testing.T) {
	for _, test := range []struct {
		reasons []DisruptionReason
		want    bool
	}{
		{nil, true}, {[]DisruptionReason{DisruptionEmpty, DisruptionDrifted}, true}, {[]DisruptionReason{DisruptionDrifted}, false},
	} {
		if got := (&Budget{Reasons: test.reasons}).AppliesTo(DisruptionEmpty); got != test.want {
			t.Errorf("reasons %v applied to Empty: got %v", test.reasons, got)
		}
	}
}
