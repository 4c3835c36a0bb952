package interruption

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// volumes implements Options.Volumes: those that the instance was launched with.
func (w *world) volumes(ctx context.Context, instance string) ([]string, error) {
	unreadable := false
	if w.locked(func() { unreadable = w.unreadable == instance }); unreadable {
		return nil, errors.New("no answer")
	}
	out, err := w.EC2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range out.Reservations[0].Instances[0].BlockDeviceMappings {
		ids = append(ids, *m.Ebs.VolumeId)
	}
	return ids, nil
}

// A machine whose own volume is impaired for five minutes is replaced, with a drain. One with an impaired volume of a pod
// is not, nor one that recovers. Volumes are not read as long as no machine has the status.
func TestVolumes(t *testing.T) {
	watching(t, 4, "on-demand", func(w *world) {
		w.Pass(5 * time.Minute)
		if got := w.seen(); got.calls["DescribeVolumeStatus OK"] != 0 {
			t.Errorf("volumes were read without a reason: %v", got.calls)
		}
		w.Must(w.Impair(w.ids[0], "ebs"))
		w.Must(w.Impair(w.ids[1], "ebs-data"))
		w.Must(w.Impair(w.ids[2], "ebs"))
		began := time.Now()
		w.Pass(270 * time.Second)
		w.Must(w.Impair(w.ids[2], ""))
		if got := w.seen(); len(got.replaced) != 0 {
			t.Errorf("after 4.5 minutes: replaced %v", got.replaced)
		}
		w.Pass(20 * time.Minute)
		got := w.seen()
		at, replaced := got.replaced[w.ids[0]]
		switch after := at.Sub(began); {
		case !replaced || len(got.replaced) != 1:
			t.Errorf("replaced %v, want only %s", got.replaced, w.ids[0])
		case after < 5*time.Minute || after > 6*time.Minute+time.Second:
			t.Errorf("replaced after %s, want 5 to 6 minutes", after)
		case len(got.deadlines) != 0:
			t.Errorf("the drain ends at %v, want no end", got.deadlines)
		case got.events[w.ids[0]+" InstanceUnhealthy"] == 0:
			t.Errorf("events %v", got.events)
		}
		if diff := cmp.Diff(map[Category]int{CategoryEBS: 1}, got.unhealthy); diff != "" {
			t.Errorf("unhealthy -want +got:\n%s", diff)
		}
	})
}

// A machine whose volumes cannot be read does not keep the others from being replaced, and its own time goes on.
func TestVolumesUnreadable(t *testing.T) {
	watching(t, 2, "on-demand", func(w *world) {
		w.Must(w.Impair(w.ids[0], "ebs"))
		w.Must(w.Impair(w.ids[1], "ebs"))
		w.Pass(2 * time.Minute)
		w.locked(func() { w.unreadable = w.ids[0] })
		w.Pass(5 * time.Minute)
		if got := w.seen(); len(got.replaced) != 1 || got.replaced[w.ids[1]].IsZero() || len(got.troubles) != 1 {
			t.Errorf("replaced %v, problems %q; want only %s replaced, and one problem", got.replaced, got.troubles, w.ids[1])
		}
		w.locked(func() { w.unreadable = "" })
		w.Pass(2 * time.Minute)
		if got := w.seen(); len(got.replaced) != 2 {
			t.Errorf("readable again: replaced %v, want both", got.replaced)
		}
	})
}

// Impaired volumes of machines that are not this controller's are not read, and the limit on removals applies.
func TestVolumesOfOthersAndLimit(t *testing.T) {
	watching(t, 2, "on-demand", func(w *world) {
		w.locked(func() {
			other := w.claims[w.ids[1]]
			other.Other = true
			w.claims[w.ids[1]] = other
			w.may = func([]Decision) (map[string]bool, error) { return map[string]bool{}, nil }
		})
		w.Must(w.Impair(w.ids[1], "ebs"))
		w.Pass(10 * time.Minute)
		if got := w.seen(); got.calls["DescribeVolumeStatus OK"] != 0 || len(got.replaced) != 0 {
			t.Errorf("of another controller: calls %v, replaced %v", got.calls, got.replaced)
		}
		w.Must(w.Impair(w.ids[0], "ebs"))
		w.Pass(10 * time.Minute)
		if got := w.seen(); len(got.replaced) != 0 || got.held != (Held{Troubled: 1, Held: 1}) {
			t.Errorf("the limit is reached: replaced %v, held %+v", got.replaced, got.held)
		}
	})
}

// Without the permission, and while the call fails, no machine is replaced because of its volumes, the problem is
// reported once, and the other checks go on at their pace.
func TestVolumesWithoutPermission(t *testing.T) {
	watching(t, 2, "on-demand", func(w *world) {
		fault, err := w.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribeVolumeStatus"})
		w.Must(err)
		w.Must(w.Impair(w.ids[0], "ebs"))
		w.Pass(10 * time.Minute)
		got := w.seen()
		if len(got.replaced) != 0 || len(got.troubles) != 1 || !strings.Contains(got.troubles[0], "ec2:DescribeVolumeStatus") {
			t.Errorf("replaced %v, problems %q", got.replaced, got.troubles)
		}
		w.Must(w.Impair(w.ids[1], "system"))
		w.Pass(4 * time.Minute)
		if got = w.seen(); len(got.replaced) != 1 {
			t.Errorf("replaced %v, want the machine whose system check fails", got.replaced)
		}
		w.Clear(fault)
		w.Pass(7 * time.Minute)
		if got = w.seen(); len(got.replaced) != 2 {
			t.Errorf("with the permission: replaced %v, want both", got.replaced)
		}
	})
}

// An endpoint that ignores filters lists healthy instances and volumes too: their content is evaluated.
func TestVolumesWithoutFilters(t *testing.T) {
	watching(t, 3, "on-demand", func(w *world) {
		_, err := w.Inject(awssim.Fault{Kind: awssim.FaultIgnoreFilters})
		w.Must(err)
		w.Must(w.Impair(w.ids[0], "ebs-data"))
		w.Pass(10 * time.Minute)
		if got := w.seen(); len(got.replaced) != 0 || got.calls["DescribeVolumeStatus OK"] == 0 {
			t.Errorf("replaced %v, calls %v", got.replaced, got.calls)
		}
	})
}

func TestEBSImpaired(t *testing.T) {
	detail := func(status ec2types.StatusType) []ec2types.EbsStatusDetails {
		return []ec2types.EbsStatusDetails{{Name: ec2types.StatusNameReachability, Status: status, ImpairedSince: aws.Time(time.Unix(1, 0))}}
	}
	for _, test := range []struct {
		status ec2types.SummaryStatus
		detail []ec2types.EbsStatusDetails
		want   bool
	}{
		{"impaired", detail("failed"), true}, {"impaired", detail("passed"), false}, {"impaired", nil, false}, {"ok", detail("failed"), false},
		{"initializing", detail("initializing"), false}, {"insufficient-data", detail("insufficient-data"), false},
		{"not-applicable", nil, false},
	} {
		if got := ebsImpaired(&ec2types.EbsStatusSummary{Status: test.status, Details: test.detail}); got != test.want {
			t.Errorf("%s with %v: impaired %t, want %t", test.status, test.detail, got, test.want)
		}
	}
	if ebsImpaired(nil) {
		t.Error("an answer of an older endpoint, without the status: impaired")
	}
}
