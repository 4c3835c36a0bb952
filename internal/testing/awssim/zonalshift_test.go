package awssim

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/google/go-cmp/cmp"
)

// shift is what the SDK decodes of a shift.
type shift struct {
	Kind, Zone, Applied string
	Began, Ends         time.Duration // from the start of the test; Ends is 0 for none
}

// shiftsOf returns the shifts of the cluster as the SDK decodes them.
func (w *world) shiftsOf(ctx context.Context, began time.Time) []shift {
	w.Helper()
	out, err := arczonalshift.NewFromConfig(w.cfg).GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{
		ResourceIdentifier: aws.String("arn:aws:eks:us-east-1:111122223333:cluster/sandbox")})
	w.must(err)
	var list []shift
	for _, s := range out.ZonalShifts {
		list = append(list, shift{string(s.ShiftType), *s.AwayFrom, string(s.AppliedStatus), s.StartTime.Sub(began), s.ExpiryTime.Sub(began)})
	}
	for _, s := range out.Autoshifts {
		list = append(list, shift{"AUTOSHIFT", *s.AwayFrom, string(s.AppliedStatus), s.StartTime.Sub(began), 0})
	}
	for _, s := range list {
		if weight := out.AppliedWeights[s.Zone]; (weight == 0) != (s.Applied == "APPLIED") {
			w.Errorf("zone %s is %s and has the weight %v", s.Zone, s.Applied, weight)
		}
	}
	return list
}

func TestZonalShifts(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		began := time.Now()
		expect := func(what string, want ...shift) {
			t.Helper()
			if diff := cmp.Diff(want, w.shiftsOf(ctx, began)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		expect("none")
		user, err := w.StartShift("us-east-1a", ShiftByUser, time.Hour)
		w.must(err)
		zone := w.zones[0].id
		own := shift{"ZONAL_SHIFT", zone, "APPLIED", 0, time.Hour}
		expect("one of a user", own)
		if _, err := w.StartShift("us-east-1b", ShiftByUser, time.Hour); err == nil {
			t.Error("a second zonal shift of a user is accepted")
		}
		w.pass(time.Minute)
		auto, err := w.StartShift(w.zones[1].id, ShiftByAWS, 0)
		w.must(err)
		_, err = w.StartShift("us-east-1c", ShiftPractice, 0)
		w.must(err)
		waiting := shift{"AUTOSHIFT", w.zones[1].id, "NOT_APPLIED", time.Minute, 0}
		practice := shift{"PRACTICE_RUN", w.zones[2].id, "NOT_APPLIED", time.Minute, 31 * time.Minute}
		expect("a user's shift is before an autoshift", own, practice, waiting)
		w.EndShift(user)
		waiting.Applied = "APPLIED"
		expect("an autoshift is before a practice run", practice, waiting)
		w.EndShift(auto)
		practice.Applied = "APPLIED"
		expect("the practice run is left", practice)
		w.pass(30 * time.Minute)
		expect("it expires")
	})
}

// TestZonalShiftRefusals covers the responses without shifts.
func TestZonalShiftRefusals(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		client := arczonalshift.NewFromConfig(w.cfg)
		ask := func(arn string) error {
			_, err := client.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String(arn)})
			return err
		}
		const arn = "arn:aws:eks:us-east-1:111122223333:cluster/sandbox"
		w.refused(ask(arn+"x"), "ResourceNotFoundException")
		w.ManageCluster(false)
		w.refused(ask(arn), "ResourceNotFoundException")
		w.ManageCluster(true)
		_, err := w.Inject(Fault{Kind: FaultDeny, Service: "arc-zonal-shift", Count: 1})
		w.must(err)
		w.refused(ask(arn), "AccessDeniedException")
		w.Clear(0)
		w.must(ask(arn))
		for _, bad := range []struct{ zone, kind string }{{"us-east-1z", "user"}, {"us-east-1a", "other"}} {
			if _, err := w.StartShift(bad.zone, ShiftKind(bad.kind), 0); err == nil {
				t.Errorf("a zonal shift of the kind %s away from %s is accepted", bad.kind, bad.zone)
			}
		}
	})
}
