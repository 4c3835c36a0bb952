package discovery

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

const account = "999988887777"

// reserved creates reservations and returns their IDs by a name.
func (w *world) reserved(list map[string]awssim.CapacityReservation) map[string]string {
	ids := map[string]string{}
	for name, r := range list {
		if r.Type == "" {
			r.Type, r.Zone, r.Total = "m5.large", "us-east-1a", 2
		}
		ids[name] = w.AWS.AddReservation(r)
	}
	return ids
}

func selecting(terms ...awsv1.CapacityReservationSelectorTerm) *awsv1.EC2NodeClass {
	return classOf(func(spec *awsv1.EC2NodeClassSpec) { spec.CapacityReservationSelectorTerms = terms })
}

// names returns the names of the reservations.
func names(list []Reservation, ids map[string]string) map[string]bool {
	got := map[string]bool{}
	for _, r := range list {
		for name, id := range ids {
			if id == r.ID {
				got[name] = true
			}
		}
	}
	return got
}

// TestReservationTerms checks which reservations each kind of term selects.
func TestReservationTerms(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		ids := w.reserved(map[string]awssim.CapacityReservation{
			"mine": {Tags: map[string]string{"team": "a"}}, "theirs": {Owner: account, Tags: map[string]string{"team": "b"}},
			"targeted": {Criteria: "targeted", Tags: map[string]string{"team": "a"}}, "plain": {},
		})
		ids["none"] = "cr-0000000000000dead"
		for name, c := range map[string]struct {
			terms []awsv1.CapacityReservationSelectorTerm
			want  []string
		}{
			"tags": {[]awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "a"}}}, []string{"mine", "targeted"}},
			"any tag": {[]awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "*"}}},
				[]string{"mine", "targeted", "theirs"}},
			"owner and tags": {[]awsv1.CapacityReservationSelectorTerm{{OwnerID: account, Tags: map[string]string{"team": "*"}}},
				[]string{"theirs"}},
			"criteria":        {[]awsv1.CapacityReservationSelectorTerm{{InstanceMatchCriteria: "targeted"}}, []string{"targeted"}},
			"id":              {[]awsv1.CapacityReservationSelectorTerm{{ID: ids["plain"]}}, []string{"plain"}},
			"id that is gone": {[]awsv1.CapacityReservationSelectorTerm{{ID: ids["none"]}, {ID: ids["plain"]}}, []string{"plain"}},
			"no such id":      {[]awsv1.CapacityReservationSelectorTerm{{ID: ids["none"]}}, nil},
			"terms together": {[]awsv1.CapacityReservationSelectorTerm{{ID: ids["plain"]}, {Tags: map[string]string{"team": "b"}}},
				[]string{"plain", "theirs"}},
			"no terms": {},
		} {
			found, err := w.Reservations.Find(ctx, selecting(c.terms...))
			w.Must(err)
			want := map[string]bool{}
			for _, name := range c.want {
				want[name] = true
			}
			if diff := cmp.Diff(want, names(found.List, ids)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", name, diff)
			}
		}
		w.Observed = nil
		_, err := w.Reservations.Find(ctx, selecting())
		w.Must(err)
		if n := len(w.Observed); n > 0 {
			t.Errorf("a class without terms causes %d calls", n)
		}
	})
}

// TestUnusableReservations checks that reservations which no machine of the class can use are named and left out.
func TestUnusableReservations(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		tags := map[string]string{"team": "a"}
		near := w.AWS.AddPlacementGroup(awssim.PlacementGroup{Name: "near", Strategy: "cluster"})
		w.AWS.AddPlacementGroup(awssim.PlacementGroup{Name: "other", Strategy: "cluster"})
		ids := w.reserved(map[string]awssim.CapacityReservation{
			"usable": {Tags: tags}, "windows": {Tags: tags, Platform: "Windows"},
			"outpost": {Tags: tags, OutpostARN: "arn:aws:outposts:us-east-1:111122223333:outpost/op-1"},
			"group":   {Tags: tags, GroupARN: "arn:aws:ec2:us-east-1:111122223333:placement-group/near"},
			"ended":   {Tags: tags, State: "expired"}, "dedicated": {Tags: tags, Tenancy: "dedicated"},
		})
		term := awsv1.CapacityReservationSelectorTerm{Tags: tags}
		for name, c := range map[string]struct {
			change   func(*awsv1.EC2NodeClassSpec)
			want     map[string]bool
			unusable int
		}{
			"plain": {nil, map[string]bool{"usable": true, "dedicated": true}, 3},
			"in the group": {func(s *awsv1.EC2NodeClassSpec) {
				s.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "near"}
			},
				map[string]bool{"usable": true, "dedicated": true, "group": true}, 2},
			"in the group, by id": {func(s *awsv1.EC2NodeClassSpec) { s.PlacementGroupSelector = &awsv1.PlacementGroupSelector{ID: near} },
				map[string]bool{"usable": true, "dedicated": true, "group": true}, 2},
			"in another group": {func(s *awsv1.EC2NodeClassSpec) {
				s.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "other"}
			},
				map[string]bool{"usable": true, "dedicated": true}, 3},
			"windows": {func(s *awsv1.EC2NodeClassSpec) { s.AMISelectorTerms[0].Alias = "windows2022@latest" }, map[string]bool{"windows": true}, 4},
		} {
			class := selecting(term)
			if c.change != nil {
				c.change(&class.Spec)
			}
			found, err := w.Reservations.Find(ctx, class)
			w.Must(err)
			if diff := cmp.Diff(c.want, names(found.List, ids)); diff != "" || len(found.Unusable) != c.unusable {
				t.Errorf("%s: unusable %q, (-want +got)\n%s", name, found.Unusable, diff)
			}
		}
	})
}

// TestReservationStates checks the states of a capacity block and of a reservation with an end, when EC2's answer is half a
// minute old as well.
func TestReservationStates(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		end := time.Now().Add(2 * time.Hour)
		ids := w.reserved(map[string]awssim.CapacityReservation{"block": {Kind: "capacity-block", End: end}, "limited": {End: end}})
		class := selecting(awsv1.CapacityReservationSelectorTerm{ID: ids["block"]}, awsv1.CapacityReservationSelectorTerm{ID: ids["limited"]})
		states := func() map[string]string {
			found, err := w.Reservations.Find(ctx, class)
			w.Must(err)
			got := map[string]string{}
			for _, r := range found.List {
				for name, id := range ids {
					if id == r.ID {
						got[name] = r.State
					}
				}
			}
			return got
		}
		for _, step := range []struct {
			pass time.Duration
			want map[string]string
		}{
			{79*time.Minute + 30*time.Second, map[string]string{"block": "active", "limited": "active"}},
			{31 * time.Second, map[string]string{"block": "expiring", "limited": "active"}},
			{39*time.Minute + 29*time.Second, map[string]string{"block": "expiring", "limited": "active"}},
			{31 * time.Second, map[string]string{}},
		} {
			w.Pass(step.pass)
			if diff := cmp.Diff(step.want, states()); diff != "" {
				t.Errorf("%s before the end: (-want +got)\n%s", time.Until(end), diff)
			}
		}
	})
}

// TestReservationCalls checks the cache, a refusal, and an endpoint that ignores filters.
func TestReservationCalls(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		ids := w.reserved(map[string]awssim.CapacityReservation{"mine": {Tags: map[string]string{"team": "a"}}, "other": {},
			"ended": {State: "cancelled"}})
		class := selecting(awsv1.CapacityReservationSelectorTerm{Tags: map[string]string{"team": "a"}})
		for range 3 {
			_, err := w.Reservations.Find(ctx, class)
			w.Must(err)
		}
		if n := w.Asked("DescribeCapacityReservations"); n != 1 {
			t.Errorf("%d calls within a minute, want 1", n)
		}
		w.Pass(10 * time.Second)
		_, err := w.Reservations.Fresh(ctx, class)
		w.Must(err)
		if n := w.Asked("DescribeCapacityReservations"); n != 1 {
			t.Errorf("%d calls for a fresh result, want 1", n)
		}
		fault, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultIgnoreFilters, Service: "ec2", Action: "DescribeCapacityReservations"})
		w.Must(err)
		w.Pass(time.Minute)
		found, err := w.Reservations.Find(ctx, class)
		w.Must(err)
		if diff := cmp.Diff(map[string]bool{"mine": true}, names(found.List, ids)); diff != "" {
			t.Errorf("filters ignored: (-want +got)\n%s", diff)
		}
		w.AWS.Clear(fault)
		_, err = w.AWS.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribeCapacityReservations"})
		w.Must(err)
		w.Pass(time.Minute)
		if _, err = w.Reservations.Find(ctx, class); KindOf(err) != Denied {
			t.Errorf("error is %v, want one of kind Denied", err)
		}
		if _, err = w.Reservations.ByID(ctx, []string{ids["mine"]}); KindOf(err) != Denied {
			t.Errorf("error is %v, want one of kind Denied", err)
		}
	})
}
