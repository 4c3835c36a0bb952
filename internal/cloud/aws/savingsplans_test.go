package aws

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// planWorld is a provider that reads commitments, and what it said last.
type planWorld struct {
	*world
	*testing.T
	p       *Provider
	said    []pricerule.Rule
	unasked int
}

func newPlanWorld(t *testing.T) *planWorld {
	t.Helper()
	w := &planWorld{world: newWorld(t, "m5.large", "m5.xlarge", "c5.large"), T: t}
	w.config.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = 10 * time.Millisecond })
	}
	w.clients = ClientsOf(w.config)
	w.restart(false)
	return w
}

// restart starts a provider that knows nothing.
func (w *planWorld) restart(isolated bool) {
	w.said = nil
	w.p = w.provider(w.T, func(o *Options) {
		o.IsolatedVPC, o.Commitments = isolated, func(rules []pricerule.Rule) { w.said = rules }
		o.Observer.Unasked = func(u call.Unasked) { w.unasked += u.Count }
	})
}

// refresh reads the commitments, and returns the rules as text.
func (w *planWorld) refresh() (string, error) {
	err := w.p.commitments.refresh(w.Context())
	var texts []string
	for _, r := range w.said {
		prices := ""
		for _, name := range slices.Sorted(maps.Keys(r.Prices)) {
			prices += fmt.Sprintf(" %s=%v", name, r.Prices[name])
		}
		texts = append(texts, fmt.Sprintf("%s:%s up to %v", r.Name, prices, math.Round(r.UpTo.USDPerHour*1e6)/1e6+r.UpTo.VCPUs))
	}
	return strings.Join(texts, "; "), err
}

// says fails unless the rules are as wanted, with an error that has the text, or none.
func (w *planWorld) says(what, want, failure string) {
	w.Helper()
	got, err := w.refresh()
	if got != want {
		w.Errorf("%s: rules %q, want %q", what, got, want)
	}
	if (failure == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), failure) {
		w.Errorf("%s: error %v, want %q", what, err, failure)
	}
}

// TestSavingsPlans covers Savings Plans from the purchase to the end: which count, at which rates, and what others leave.
func TestSavingsPlans(t *testing.T) {
	w := newPlanWorld(t)
	w.says("without plans", "", "")
	w.sim.AddSavingsPlan(awssim.SavingsPlan{Commitment: 1, Rates: map[string]float64{"m5.large": 0.06, "c5.large": 0.05}})
	w.sim.AddSavingsPlan(awssim.SavingsPlan{Commitment: 0.5, Rates: map[string]float64{"m5.large": 0.06, "c5.large": 0.05},
		End: w.clock.Now().Add(30 * time.Minute)})
	w.sim.AddSavingsPlan(awssim.SavingsPlan{Type: "EC2Instance", Family: "m5", Years: 3, Payment: "All Upfront", Commitment: 0.04,
		Rates: map[string]float64{"m5.large": 0.04, "m5.xlarge": 0.08}})
	for _, other := range []awssim.SavingsPlan{{Type: "SageMaker"}, {Type: "EC2Instance", Family: "m5", Region: "eu-west-1"},
		{Currency: "CNY"}, {State: "payment-pending"}, {State: "queued", Start: w.clock.Now().Add(time.Hour)}, {State: "returned"}} {
		other.Commitment = 7
		w.sim.AddSavingsPlan(other)
	}
	const compute = "sp-compute-1y-no-upfront: c5.large=0.05 m5.large=0.06 up to "
	const family = "sp-m5-3y-all-upfront: m5.large=0.04 m5.xlarge=0.08 up to 0.04; "
	w.says("with three plans", family+compute+"1.5", "")
	w.launched(t, w.p, "own")
	w.says("with a machine of the cluster", family+compute+"1.5", "")
	runOther(t, w.world)
	w.says("another instance uses the plan of the family", compute+"1.5", "")
	runOther(t, w.world)
	w.says("and the next one the plan of all", compute+"1.44", "")
	w.sim.AddReservedInstances(awssim.ReservedInstances{Type: "m5.large", Count: 1})
	w.says("reserved instances are used first", compute+"1.5", "")
	_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultIgnoreFilters, Service: "savingsplans"})
	check(t, err)
	w.says("with answers that ignore the filters", compute+"1.5", "")
	if w.unasked == 0 {
		t.Error("nothing that was not asked for is reported")
	}
	w.clock.skip(31 * time.Minute)
	w.says("one has ended", compute+"1", "")
}

// TestRatesOfSavingsPlans reads the rates of a whole region, in pages.
func TestRatesOfSavingsPlans(t *testing.T) {
	w := newPlanWorld(t)
	w.sim.AddSavingsPlan(awssim.SavingsPlan{Commitment: 1})
	w.sim.AddSavingsPlan(awssim.SavingsPlan{Type: "EC2Instance", Family: "m5", Commitment: 2})
	_, err := w.refresh()
	check(t, err)
	if len(w.said) != 2 {
		t.Fatalf("%d rules, want 2", len(w.said))
	}
	family, compute := w.said[0], w.said[1]
	if len(compute.Prices) < 500 || compute.Prices["m5.large"] > 0.08 || family.Prices["m5.large"] >= compute.Prices["m5.large"] {
		t.Errorf("%d types, m5.large at %v, and at %v with the plan of the family", len(compute.Prices), compute.Prices["m5.large"],
			family.Prices["m5.large"])
	}
	for name, usd := range family.Prices {
		if !strings.HasPrefix(name, "m5.") || usd <= 0 {
			t.Errorf("the plan of the family has %s at %v", name, usd)
		}
	}
}

// TestSavingsPlansThatFail covers failed calls: what is known stays, and what can be read counts.
func TestSavingsPlansThatFail(t *testing.T) {
	w := newPlanWorld(t)
	with := func(what, want, failure string, faults ...awssim.Fault) {
		t.Helper()
		for _, f := range faults {
			_, err := w.sim.Inject(f)
			check(t, err)
		}
		w.says(what, want, failure)
		w.sim.Clear(0)
	}
	denied := awssim.Fault{Kind: awssim.FaultDeny, Service: "savingsplans"}
	w.sim.AddSavingsPlan(awssim.SavingsPlan{Type: "EC2Instance", Family: "m5", Commitment: 1, Rates: map[string]float64{"m5.large": 0.06},
		End: w.clock.Now().Add(30 * time.Minute)})
	w.sim.AddReservedInstances(awssim.ReservedInstances{Type: "m5.large", Count: 2})
	const reserved, plan = "ri-m5: up to 4", "sp-m5-1y-no-upfront: m5.large=0.06 up to 1"
	with("the others are not known", "", "EC2 DescribeInstances",
		awssim.Fault{Kind: awssim.FaultFail, Service: "ec2", Action: "DescribeInstances", Code: "InternalError"})
	with("reserved instances are not allowed", plan, "EC2 DescribeReservedInstances",
		awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribeReservedInstances"})
	w.restart(false)
	with("plans are not allowed", reserved, "is not authorized to perform: savingsplans:DescribeSavingsPlans", denied)
	denied.Action = "DescribeSavingsPlanRates"
	with("their rates are not allowed", reserved, "is not authorized to perform: savingsplans:DescribeSavingsPlanRates", denied)
	w.says("all is allowed", reserved+"; "+plan, "")
	for _, f := range []awssim.Fault{
		{Kind: awssim.FaultThrottle, Rate: 0.001}, {Kind: awssim.FaultFail, Code: "InternalServerException", Status: 500},
		{Kind: awssim.FaultGarble, Body: "<html>"}, {Kind: awssim.FaultGarble, ContentType: "application/json", Body: `{"savingsPlans":`},
	} {
		f.Service = "savingsplans"
		if f.Kind == awssim.FaultThrottle { // the first call is allowed
			f.Action = "DescribeSavingsPlanRates"
			w.sim.AddSavingsPlan(awssim.SavingsPlan{Type: "EC2Instance", Family: "c5", Commitment: 1, Rates: map[string]float64{"c5.large": 0.05},
				End: w.clock.Now().Add(time.Minute)})
		}
		with(string(f.Kind)+" "+f.Body, reserved+"; "+plan, "savingsplans", f)
	}
	w.clock.skip(31 * time.Minute)
	with("plans are not allowed after their end", reserved, "savingsplans", awssim.Fault{Kind: awssim.FaultDeny, Service: "savingsplans"})
}

// TestSavingsPlansGarbled covers answers with a success status that no plan of AWS has: they do not count.
func TestSavingsPlansGarbled(t *testing.T) {
	w := newPlanWorld(t)
	good := `{"savingsPlanId":"1","state":"active","savingsPlanType":"Compute","currency":"USD","commitment":"1","end":"2100-01-01T00:00:00.000Z",` +
		`"termDurationInSeconds":31536000,"paymentOption":"No Upfront"}`
	w.sim.AddSavingsPlan(awssim.SavingsPlan{Commitment: 1})
	for _, change := range []string{"", `"1","end"->"NaN","end"`, `"1","end"->"1e300","end"`, `"1","end"->"-1","end"`, `"1","end"->"","end"`,
		`2100->0000`, `2100-01->yesterday`, `"1","state"->"","state"`, `"USD"->"EUR"`, `"active"->"retired"`, `"Compute"->"EC2Instance"`} {
		plan := good
		if before, after, ok := strings.Cut(change, "->"); ok {
			if plan = strings.ReplaceAll(good, before, after); plan == good {
				t.Fatalf("%s changes nothing", change)
			}
		}
		_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultGarble, Service: "savingsplans", Action: "DescribeSavingsPlans",
			ContentType: "application/json", Body: `{"savingsPlans":[` + plan + `]}`})
		check(t, err)
		_, err = w.sim.Inject(awssim.Fault{Kind: awssim.FaultGarble, Service: "savingsplans", Action: "DescribeSavingsPlanRates",
			ContentType: "application/json", Body: rateAnswer(`"0.06"`)})
		check(t, err)
		want := "sp-compute-1y-no-upfront: m5.large=0.06 up to 1"
		if change != "" {
			want = ""
		}
		w.restart(false)
		w.says(change, want, "")
		w.sim.Clear(0)
	}
	for _, rate := range []string{`"0"`, `"-1"`, `"NaN"`, `"1e9"`, `""`, `null`} {
		_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultGarble, Service: "savingsplans", Action: "DescribeSavingsPlanRates",
			ContentType: "application/json", Body: rateAnswer(rate)})
		check(t, err)
		w.restart(false)
		w.says("the rate "+rate, "", "")
		w.sim.Clear(0)
	}
	_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultGarble, Service: "savingsplans", Action: "DescribeSavingsPlans",
		ContentType: "application/json", Body: `{"savingsPlans":[],"nextToken":"again"}`})
	check(t, err)
	w.says("pages without end", "", "more than 1000 pages")
}

// rateAnswer is an answer with one rate, for m5.large.
func rateAnswer(rate string) string {
	property := func(name, value string) string { return `{"name":"` + name + `","value":"` + value + `"}` }
	return `{"searchResults":[{"rate":` + rate + `,"currency":"USD","unit":"Hrs","productType":"EC2","properties":[` +
		strings.Join([]string{property("region", "us-east-1"), property("instanceType", "m5.large"), property("tenancy", "shared"),
			property("productDescription", "Linux/UNIX")}, ",") + `]}]}`
}

// TestSavingsPlansIsolated: without a way to the endpoint of Savings Plans, it is not called.
func TestSavingsPlansIsolated(t *testing.T) {
	w := newPlanWorld(t)
	w.sim.AddSavingsPlan(awssim.SavingsPlan{Commitment: 1})
	w.restart(true)
	w.says("--isolated-vpc", "", "")
	for c := range w.sim.Calls() {
		if c.Service == "savingsplans" {
			t.Errorf("%s is called", c.Action)
		}
	}
}

// TestPurchasesThatAreMissing covers answers that lack a purchase: one is not believed, two are.
func TestPurchasesThatAreMissing(t *testing.T) {
	w := newPlanWorld(t)
	w.sim.AddSavingsPlan(awssim.SavingsPlan{Commitment: 1, Rates: map[string]float64{"m5.large": 0.06},
		End: w.clock.Now().Add(30 * time.Minute)})
	w.sim.AddReservedInstances(awssim.ReservedInstances{Type: "m5.large", Count: 2})
	const reserved, both = "ri-m5: up to 4", "ri-m5: up to 4; sp-compute-1y-no-upfront: m5.large=0.06 up to 1"
	empty := func(count int) {
		t.Helper()
		for _, f := range []awssim.Fault{
			{Service: "ec2", Action: "DescribeReservedInstances", ContentType: "text/xml",
				Body: `<DescribeReservedInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>1</requestId>` +
					`<reservedInstancesSet/></DescribeReservedInstancesResponse>`},
			{Service: "savingsplans", Action: "DescribeSavingsPlans", ContentType: "application/json", Body: `{"savingsPlans":[]}`}} {
			f.Kind, f.Count = awssim.FaultGarble, count
			_, err := w.sim.Inject(f)
			check(t, err)
		}
	}
	w.says("at first", both, "")
	for range 2 {
		empty(1)
		w.says("an empty answer", both, "")
		w.says("a full answer", both, "")
	}
	_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultGarble, Count: 1, Service: "savingsplans", Action: "DescribeSavingsPlanRates",
		ContentType: "application/json", Body: `{"searchResults":[]}`})
	check(t, err)
	w.says("an answer without rates", both, "")
	w.says("an answer with rates", both, "")
	empty(2)
	w.says("the first of two empty answers", both, "")
	w.says("the second one", "", "")
	w.says("they are back", both, "")
	w.clock.skip(31 * time.Minute)
	check(t, w.p.commitments.follow(t.Context()))
	if len(w.said) != 1 || w.said[0].Name != "ri-m5" {
		t.Errorf("after the end of the plan, without a call: %v, want %s", w.said, reserved)
	}
}

// TestOwnInReservation: machines of the cluster in capacity reservations use commitments, as others do.
func TestOwnInReservation(t *testing.T) {
	w := newPlanWorld(t)
	w.sim.AddReservedInstances(awssim.ReservedInstances{Type: "m5.large", Count: 2})
	own := []ec2types.Tag{{Key: aws.String(awsv1.TagNodePool), Value: aws.String("default")},
		{Key: aws.String(awsv1.TagCluster), Value: aws.String(testCluster)}}
	runOther(t, w.world, own...)
	w.says("a machine of the cluster", "ri-m5: up to 4", "")
	for _, s := range w.sim.Subnets() {
		if s.Zone != "us-east-1a" {
			w.sim.AddReservation(awssim.CapacityReservation{Type: "m5.large", Zone: s.Zone, Total: 1})
			break
		}
	}
	runOther(t, w.world, own...)
	w.says("one in a capacity reservation", "ri-m5: up to 2", "")
}

// TestCommitmentsAreOfLinux: no other system uses the rules.
func TestCommitmentsAreOfLinux(t *testing.T) {
	w := newPlanWorld(t)
	w.sim.AddSavingsPlan(awssim.SavingsPlan{Commitment: 1})
	w.sim.AddReservedInstances(awssim.ReservedInstances{Type: "m5.large"})
	_, err := w.refresh()
	check(t, err)
	for _, r := range w.said {
		if len(r.Requirements) != 1 || r.Requirements[0].Key != "kubernetes.io/os" || !slices.Equal(r.Requirements[0].Values, []string{"linux"}) {
			t.Errorf("%s requires %v", r.Name, r.Requirements)
		}
	}
}
