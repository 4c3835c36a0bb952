package discovery

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

func TestQueries(t *testing.T) {
	same := func(name string, got, want []query) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(query{}, filter{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	same("subnets", subnetQueries([]awsv1.SubnetSelectorTerm{
		{Tags: map[string]string{"b": "2", "a": "*"}}, {ID: "subnet-2"}, {ID: "subnet-1"}, {ID: "subnet-2"}, {Tags: map[string]string{"c": "3"}},
	}), []query{
		{filters: []filter{{"subnet-id", []string{"subnet-1", "subnet-2"}}}},
		{filters: []filter{{"tag-key", []string{"a"}}, {"tag:b", []string{"2"}}}},
		{filters: []filter{{"tag:c", []string{"3"}}}},
	})
	same("no term", subnetQueries(nil), nil)
	same("groups", groupQueries([]awsv1.SecurityGroupSelectorTerm{
		{Name: "n2"}, {Tags: map[string]string{"a": "1"}}, {ID: "sg-1", Name: "not looked at"},
		{Name: "n1", Tags: map[string]string{"not": "looked at"}},
	}), []query{
		{filters: []filter{{"group-id", []string{"sg-1"}}}},
		{filters: []filter{{"group-name", []string{"n1", "n2"}}}},
		{filters: []filter{{"tag:a", []string{"1"}}}},
	})
	same("images", imageQueries([]awsv1.AMISelectorTerm{
		{ID: "ami-2"}, {SSMParameter: "/mine"}, {Name: "node-*"}, {Name: "node-*", Owner: "111122223333", Tags: map[string]string{"a": "1"}},
		{Tags: map[string]string{"a": "1"}}, {Tags: map[string]string{"a": "1"}, Owner: "self"},
	}, []string{"ami-1", "no image", ""}), []query{
		{filters: []filter{{"image-id", []string{"ami-1", "ami-2"}}}},
		{filters: []filter{{"name", []string{"node-*"}}}, owners: []string{"self", "amazon"}},
		{filters: []filter{{"name", []string{"node-*"}}, {"tag:a", []string{"1"}}}, owners: []string{"111122223333"}},
		{filters: []filter{{"tag:a", []string{"1"}}}},
		{filters: []filter{{"tag:a", []string{"1"}}}, owners: []string{"self"}},
	})
}

// TestSubnets checks that terms are alternatives, results have no duplicates, all pages are read, and results are read
// again after a minute, or when the class has changed.
func TestSubnets(t *testing.T) {
	within(t, awssim.Options{PageSize: 2}, Kubernetes{}, func(ctx context.Context, w *world) {
		var private []string
		for _, s := range w.AWS.Subnets() {
			if s.Tags["karpenter.sh/discovery"] != "" {
				private = append(private, s.ID)
			}
		}
		w.Must(w.AWS.TakeAddresses(private[0], 100))
		class := classOf(func(spec *awsv1.EC2NodeClassSpec) {
			spec.SubnetSelectorTerms = append(spec.SubnetSelectorTerms, awsv1.SubnetSelectorTerm{ID: private[1]})
		})
		found, err := w.Subnets.Find(ctx, class)
		w.Must(err)
		switch {
		case len(found) != len(private):
			t.Errorf("len(found) is %v, want %v, found %+v", len(found), len(private), found)
		case found[len(found)-1].ID != private[0]:
			t.Errorf("found[len(found)-1].ID is %v, want %v", found[len(found)-1].ID, private[0])
		case found[0].Free <= found[len(found)-1].Free:
			t.Errorf("found[0].Free is %v, want more than %v", found[0].Free, found[len(found)-1].Free)
		}
		for k := 1; k < len(found)-1; k++ {
			if found[k-1].ID >= found[k].ID {
				t.Errorf("equal subnets are not sorted by ID: %s before %s", found[k-1].ID, found[k].ID)
			}
		}
		switch {
		case found[0].Zone == "":
			t.Errorf(`found[0].Zone is "", %+v`, found[0])
		case found[0].ZoneID == "":
			t.Errorf(`found[0].ZoneID is "", %+v`, found[0])
		case found[0].VPC == "":
			t.Errorf(`found[0].VPC is "", %+v`, found[0])
		}
		if n := w.Asked("DescribeSubnets"); n < 4 {
			t.Errorf("%d calls for 7 subnets in pages of 2, want 4 or more", n)
		}
		if free, known := w.Addresses.Free(private[0]); !known || free != 8187-100 {
			t.Errorf("free addresses: %d, known %v, want 8087, true", free, known)
		}
		w.Pass(59 * time.Second)
		_, err = w.Subnets.Find(ctx, class)
		w.Must(err)
		if n := w.Asked("DescribeSubnets"); n != 0 {
			t.Errorf("%d calls within a minute, want none", n)
		}
		class.Generation = 2
		class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"kubernetes.io/role/elb": "*"}}}
		switch found, err = w.Subnets.Find(ctx, class); {
		case err != nil:
			t.Errorf("after the class changed: error %v", err)
		case len(found) == 0:
			t.Errorf("after the class changed: len(found) is 0, %v", found)
		case found[0].ID == private[0]:
			t.Errorf("after the class changed: found[0].ID is %v, want another value than %v", found[0].ID, private[0])
		}
		w.Pass(time.Minute)
		w.Asked("")
		_, err = w.Subnets.Find(ctx, class)
		w.Must(err)
		if n := w.Asked("DescribeSubnets"); n == 0 {
			t.Error("no call after a minute")
		}
	})
}

// TestOneCallForMany checks that concurrent callers share one call, and that an error is returned only to the caller
// that made the call.
func TestOneCallForMany(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		_, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultSlow, Delay: time.Second, Count: 1})
		w.Must(err)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if found, err := w.Subnets.Find(ctx, classOf(nil)); err != nil || len(found) == 0 {
					t.Errorf("found %v, %v", found, err)
				}
			})
		}
		all.Wait()
		if n := w.Asked("DescribeSubnets"); n != 1 {
			t.Errorf("%d calls for 10 callers, want 1", n)
		}
	})
}

// TestErrors checks that errors have kind, code and request ID, that the observer receives them, and that no error is
// cached.
func TestErrors(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		for _, test := range []struct {
			fault awssim.Fault
			kind  Kind
			code  string
		}{
			{awssim.Fault{Kind: awssim.FaultFail, Code: "RequestLimitExceeded", Status: 503, Count: 1}, Throttled, "RequestLimitExceeded"},
			{awssim.Fault{Kind: awssim.FaultFail, Code: "InternalError", Status: 500, Count: 1}, Transient, "InternalError"},
			{awssim.Fault{Kind: awssim.FaultDeny, Action: "DescribeSubnets", Count: 1}, Denied, "UnauthorizedOperation"},
			{awssim.Fault{Kind: awssim.FaultFail, Code: "InvalidParameterValue", Status: 400, Count: 1}, Rejected, "InvalidParameterValue"},
			{awssim.Fault{Kind: awssim.FaultLose, Count: 1}, Transient, ""},
			{awssim.Fault{Kind: awssim.FaultFreeze}, Transient, ""},
		} {
			id, err := w.AWS.Inject(test.fault)
			w.Must(err)
			w.Observed = nil
			began := time.Now()
			_, err = w.Subnets.Find(ctx, classOf(nil))
			w.AWS.Clear(id)
			var call *CallError
			if !errors.As(err, &call) {
				t.Errorf("%v %s: error %v, want a *CallError", test.fault.Kind, test.code, err)
				continue
			}
			switch {
			case call.Kind != test.kind:
				t.Errorf("%v: call.Kind is %v, want %v", test.fault.Kind, call.Kind, test.kind)
			case call.Code != test.code:
				t.Errorf("%v: call.Code is %v, want %v", test.fault.Kind, call.Code, test.code)
			case KindOf(err) != test.kind:
				t.Errorf("%v: KindOf(err) is %v, want %v, (%v", test.fault.Kind, KindOf(err), test.kind, err)
			}
			if answered := test.code != ""; answered != (call.RequestID != "") || answered != strings.Contains(err.Error(),
				"(request "+call.RequestID) {
				t.Errorf("%v: request ID %q in %q", test.fault.Kind, call.RequestID, err)
			}
			if elapsed := time.Since(began); elapsed > 31*time.Second {
				t.Errorf("%v: took %v, want at most 30 s", test.fault.Kind, elapsed)
			}
			want := test.code
			if want == "" {
				want = "NoAnswer"
			}
			switch {
			case len(w.Observed) != 1:
				t.Errorf("%v: len(w.Observed) is %v, want 1, observed %+v", test.fault.Kind, len(w.Observed), w.Observed)
			case w.Observed[0].Code != want:
				t.Errorf("%v: w.Observed[0].Code is %v, want %v", test.fault.Kind, w.Observed[0].Code, want)
			case w.Observed[0].Service != "EC2":
				t.Errorf(`%v: w.Observed[0].Service is %v, want "EC2"`, test.fault.Kind, w.Observed[0].Service)
			}
		}
		if _, err := w.Subnets.Find(ctx, classOf(nil)); err != nil {
			t.Errorf("after all errors: %v", err)
		}
	})
}

// TestGroups checks the selection by name, tag and ID. Of two groups with the same name, the one in the subnets'
// network is used.
func TestGroups(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		subnets, err := w.Subnets.Find(ctx, classOf(nil))
		w.Must(err)
		tagged, err := w.Groups.Find(ctx, classOf(nil))
		w.Must(err)
		switch {
		case len(tagged) != 1:
			t.Fatalf("by tag: len(tagged) is %v, want 1, %+v", len(tagged), tagged)
		case tagged[0].Name != "eks-cluster-sg-sandbox":
			t.Fatalf(`by tag: tagged[0].Name is %v, want "eks-cluster-sg-sandbox"`, tagged[0].Name)
		case tagged[0].VPC != subnets[0].VPC:
			t.Fatalf("by tag: tagged[0].VPC is %v, want %v", tagged[0].VPC, subnets[0].VPC)
		}
		named := classOf(func(spec *awsv1.EC2NodeClassSpec) {
			spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Name: "eks-cluster-sg-sandbox"}}
		})
		named.UID = "uid-2"
		both, err := w.Groups.Find(ctx, named)
		w.Must(err)
		used, elsewhere := OfNetwork(both, subnets)
		switch {
		case len(used) != 1:
			t.Errorf("by name: len(used) is %v, want 1, used %+v", len(used), used)
		case used[0].ID != tagged[0].ID:
			t.Errorf("by name: used[0].ID is %v, want %v", used[0].ID, tagged[0].ID)
		case len(elsewhere) != 1:
			t.Errorf("by name: len(elsewhere) is %v, want 1, elsewhere %+v", len(elsewhere), elsewhere)
		}
		byID := classOf(func(spec *awsv1.EC2NodeClassSpec) {
			spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{ID: elsewhere[0].ID}, {ID: "sg-0123456789abcdef0"}}
		})
		byID.UID = "uid-3"
		found, err := w.Groups.Find(ctx, byID)
		w.Must(err)
		if used, _ := OfNetwork(found, subnets); len(used) != 1 || used[0].ID != elsewhere[0].ID {
			t.Errorf("by ID: used %+v, want the one of the other network, which the class refers to", used)
		}
	})
}
