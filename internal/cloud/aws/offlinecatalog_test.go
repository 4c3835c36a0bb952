package aws

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

func newOfflineCatalog(region string) *OfflineCatalog {
	return NewOfflineCatalog(OfflineOptions{Region: region, MemoryOverheadPercent: 0.075})
}

// plain returns the types without spot prices, and the spot prices by type and zone.
func plain(types []cloud.InstanceType) (without []cloud.InstanceType, spot map[string]float64) {
	spot = map[string]float64{}
	for _, t := range types {
		offerings := append([]cloud.Offering{}, t.Offerings...)
		for i := range offerings {
			if offerings[i].CapacityType == karpv1.CapacityTypeSpot {
				spot[t.Name+" "+offerings[i].Zone] = offerings[i].Price
				offerings[i].Price = 0
			}
		}
		t.Offerings = offerings
		without = append(without, t)
	}
	return without, spot
}

// The offline catalog returns the same instance types for a class as the provider: labels, capacity, overhead, zones
// and on-demand prices, based on its subnets, its images, its kubelet settings and the memory seen on nodes.
func TestOfflineCatalogEqualsProvider(t *testing.T) {
	w := newWorld(t)
	p := w.provider(t)
	class := w.class(t, "default")
	pods, policy := intstr.FromInt32(31), awsv1.InstanceStorePolicyRAID0
	class.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: &pods, SystemReserved: map[string]string{"memory": "512Mi"}}
	class.Spec.InstanceStorePolicy = &policy
	check(t, w.api.Update(t.Context(), class))
	class.Status.Subnets = class.Status.Subnets[:1]
	check(t, w.api.Status().Update(t.Context(), class))
	s := newOfflineCatalog("us-east-1")
	const seen = 15 << 30
	for _, image := range class.Status.AMIs {
		s.Observe("m5.xlarge", image.ID, seen)
		known, _ := catalog.Load().Type("m5.xlarge")
		p.memory.Observe(known, image.ID, seen)
	}
	pool := &karpv1.NodePool{}
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	want, err := p.Catalog(t.Context(), pool)
	check(t, err)
	got, err := s.Catalog(class)
	check(t, err)
	wantPlain, _ := plain(want)
	gotPlain, spot := plain(got)
	if len(got) < 500 {
		t.Errorf("only %d types", len(got))
	}
	if diff := cmp.Diff(wantPlain, gotPlain); diff != "" {
		t.Errorf("the offline catalog differs from the provider (-want +got):\n%s", diff)
	}
	for _, sold := range got {
		for _, o := range sold.Offerings {
			onDemand, known := s.prices.OnDemand(sold.Name)
			if !known || o.CapacityType != karpv1.CapacityTypeSpot {
				continue
			}
			if got, want := spot[sold.Name+" "+o.Zone], onDemand*EstimatedSpotShare; got != want {
				t.Fatalf("%s in %s as spot costs %v, want %v", sold.Name, o.Zone, got, want)
			}
		}
	}
}

// After Refresh, types and prices are those of AWS, and the source has the date.
func TestOfflineCatalogRefreshed(t *testing.T) {
	w := newWorld(t)
	s := newOfflineCatalog("us-east-1")
	if source := s.Source(); source != "on demand those built in, of us-east-1 on 2026-07-20; spot 40% of that, as an estimate of prices that only AWS has" {
		t.Errorf("embedded: %q", source)
	}
	check(t, s.Refresh(t.Context(), w.patient()))
	types, err := s.Catalog(w.class(t, "default"))
	check(t, err)
	_, spot := plain(types)
	prices := map[string]float64{}
	for _, pool := range w.sim.Pools() {
		if pool.CapacityType == karpv1.CapacityTypeSpot {
			prices[pool.Type+" "+pool.Zone] = pool.Price
		}
	}
	if len(spot) < 1000 {
		t.Errorf("only %d spot prices", len(spot))
	}
	for at, price := range spot {
		switch {
		case price <= 0:
			t.Fatalf("price is %v, want more than 0", price)
		case price < prices[at]/2:
			t.Fatalf("price is %v, want at least %v, spot in %s, and AWS has about %v", price, prices[at]/2, at, prices[at])
		case price > prices[at]*2:
			t.Fatalf("price is %v, want at most %v, spot in %s, and AWS has about %v", price, prices[at]*2, at, prices[at])
		}
	}
	if source := s.Source(); !strings.HasPrefix(source, "on demand and spot those of AWS in us-east-1 at 20") {
		t.Errorf("refreshed: %q", source)
	}
}

// Without permission to read the price list, and without AWS, the offline catalog reports it.
func TestOfflineCatalogSendsNoRequest(t *testing.T) {
	w := newWorld(t)
	_, err := w.sim.Inject(awssim.Fault{Action: "GetProducts", Kind: awssim.FaultDeny})
	check(t, err)
	s := newOfflineCatalog("us-east-1")
	check(t, s.Refresh(t.Context(), w.patient()))
	if source := s.Source(); !strings.Contains(source,
		"on demand those built in, of us-east-1 on 2026-07-20 (the price list cannot be read: ") || !strings.Contains(source,
		"; spot those of AWS in us-east-1 at ") {
		t.Errorf("without the price list: %q", source)
	}
	nowhere := ClientsOf(aws.Config{Region: "us-east-1", HTTPClient: &http.Client{}, BaseEndpoint: aws.String("http://127.0.0.1:1"),
		RetryMaxAttempts: 1,
		Credentials:      credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", "")})
	if err := newOfflineCatalog("us-east-1").Refresh(t.Context(), nowhere); err == nil {
		t.Error("no error although AWS cannot be reached")
	}
}

// A class without status is not ready, or is assumed to have subnets in all zones. In regions for which the catalog has
// no zones and no prices, everything is offered at the prices of another region.
func TestOfflineCatalogAssumes(t *testing.T) {
	class := testClass("fresh")
	var unready *cloud.NodeClassNotReadyError
	if _, err := newOfflineCatalog("us-east-1").Catalog(class); !errors.As(err, &unready) {
		t.Errorf("a class without status: %v", err)
	}
	for _, c := range []struct {
		region, assumed, source string
		zones                   []string
	}{
		{"us-east-1", "a subnet in each of us-east-1a, us-east-1b, us-east-1c, us-east-1d, us-east-1e, us-east-1f, and images for every type",
			"on demand those built in, of us-east-1 on 2026-07-20;", nil},
		{"eu-central-1", "a subnet in each of eu-central-1a, eu-central-1b, eu-central-1c, eu-central-1d, and images for every type",
			"on demand those built in, of us-east-1 on 2026-07-20, used as estimates for eu-central-1;",
			[]string{"eu-central-1d", "us-west-2a"}},
	} {
		s := newOfflineCatalog(c.region)
		types, assumed, err := s.Assumed(class, c.zones)
		check(t, err)
		if assumed != c.assumed {
			t.Errorf("%s: assumed %q, want %q", c.region, assumed, c.assumed)
		}
		if !strings.HasPrefix(s.Source(), c.source) {
			t.Errorf("%s: source %q", c.region, s.Source())
		}
		if len(types) < 900 || types[0].Offerings[0].Price <= 0 {
			t.Errorf("%s: %d types, the first %+v", c.region, len(types), types[0])
		}
	}
}

func TestRegionOf(t *testing.T) {
	for zone, want := range map[string]string{"us-east-1a": "us-east-1", "us-gov-west-1b": "us-gov-west-1",
		"us-east-1-bos-1a": "us-east-1", "eu-west-1": "eu-west-1",
		"test-zone-a": "", "": ""} {
		if got := RegionOf(zone); got != want {
			t.Errorf("%s: %q, want %q", zone, got, want)
		}
	}
}
