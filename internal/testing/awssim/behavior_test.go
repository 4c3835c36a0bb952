package awssim

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"
)

// A new instance may not be found at first, and an old state may be shown. After Options.Lag everything is visible.
func TestLag(t *testing.T) {
	in(t, Options{Lag: 10 * time.Second, Limits: map[string]Limit{}}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		if _, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType,
			w.way("m5.large", zoneA))); codeOf(err) != "InvalidLaunchTemplateName.NotFoundException" {
			t.Errorf("a template that was just created: %v", err)
		}
		w.pass(10 * time.Second)
		out, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		id := launched(out)[0]
		seen := map[string]int{}
		for range 40 {
			w.pass(250 * time.Millisecond)
			seen[w.state(ctx, id)]++
		}
		if seen["InvalidInstanceID.NotFound"] == 0 || seen["pending"] == 0 {
			t.Errorf("in the first ten seconds: %v, want it not found sometimes", seen)
		}
		w.pass(time.Minute)
		for range 20 {
			if s := w.state(ctx, id); s != "running" {
				t.Errorf("after a minute: %s", s)
			}
		}
	})
}

// EC2's published limits are enforced, and token buckets refill.
func TestThrottling(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		request := func() error {
			_, err := w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
			return err
		}
		for k := range 50 {
			if err := request(); err != nil {
				t.Fatalf("call %d: %v", k+1, err)
			}
		}
		w.refused(request(), "RequestLimitExceeded")
		if _, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5)}); err != nil {
			t.Errorf("another action's bucket: %v", err)
		}
		w.pass(time.Second)
		for k := range 5 {
			if err := request(); err != nil {
				t.Errorf("call %d after a second: %v", k+1, err)
			}
		}
		w.refused(request(), "RequestLimitExceeded")
		if got := w.Calls()[CallCount{"ec2", "CreateFleet", "RequestLimitExceeded"}]; got != 2 {
			t.Errorf("%d throttled calls are counted, want 2", got)
		}
		for range 50 {
			_, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
			w.must(err)
		}
		_, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
		w.refused(err, "RequestLimitExceeded")
	})
}

// The SDK's own retryer succeeds with a throttled API.
func TestThrottledRetries(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		_, err := w.Inject(Fault{Kind: FaultThrottle, Service: "ec2", Rate: 1})
		w.must(err)
		client := ec2.NewFromConfig(w.cfg, func(o *ec2.Options) {
			o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 10 })
		})
		began := time.Now()
		for range 4 {
			_, err := client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
			w.must(err)
		}
		if elapsed := time.Since(began); elapsed < 3*time.Second {
			t.Errorf("four calls at one a second took %v", elapsed)
		}
	})
}

// Each kind of fault has its documented effect, on exactly the calls that it applies to.
func TestFaults(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		call := func() error {
			_, err := w.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
			return err
		}
		inject := func(f Fault) int {
			f.Service, f.Action = "ec2", "DescribeSubnets"
			id, err := w.Inject(f)
			w.must(err)
			return id
		}
		inject(Fault{Kind: FaultFail, Count: 2, Code: "InternalError"})
		w.refused(call(), "InternalError")
		_, err := w.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{MaxResults: aws.Int32(5)})
		w.must(err)
		w.refused(call(), "InternalError")
		w.must(call())

		w.Clear(0)
		id := inject(Fault{Kind: FaultDeny})
		w.refused(call(), "UnauthorizedOperation")
		w.Clear(id)
		inject(Fault{Kind: FaultSlow, Count: 1, Delay: 7 * time.Second})
		began := time.Now()
		w.must(call())
		if elapsed := time.Since(began); elapsed.Truncate(100*time.Millisecond) != 7*time.Second {
			t.Errorf("a slow call took %v, want 7s", elapsed)
		}
		frozen := inject(Fault{Kind: FaultFreeze})
		done := make(chan error, 1)
		go func() { done <- call() }()
		w.pass(time.Hour)
		select {
		case err := <-done:
			t.Errorf("a frozen call got a response: %v", err)
		default:
		}
		w.Clear(frozen)
		w.must(<-done)
		inject(Fault{Kind: FaultFreeze})
		patient, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, err := w.ec2.DescribeSubnets(patient, &ec2.DescribeSubnetsInput{}); err == nil {
			t.Error("a frozen call got a response")
		}
		if _, err := w.Inject(Fault{Kind: "melt"}); err == nil {
			t.Error("an unknown kind of fault is accepted")
		}
	})
}

// Each service rejects expired credentials with its own error code.
func TestExpiredCredentials(t *testing.T) {
	in(t, Options{Queue: "queue"}, func(ctx context.Context, w *world) {
		w.ExpireCredentials(testKey)
		_, err := w.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
		w.refused(err, "RequestExpired")
		_, err = w.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		w.refused(err, "ExpiredToken")
		_, err = w.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("queue")})
		w.refused(err, "ExpiredTokenException")
		_, err = w.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("x")})
		w.refused(err, "ExpiredTokenException")
		w.RenewCredentials(testKey)
		identity, err := w.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		w.must(err)
		if *identity.Account != "111122223333" {
			t.Errorf("account %s", *identity.Account)
		}
	})
}

// Spot instances are reclaimed when their pools shrink.
func TestScarcity(t *testing.T) {
	in(t, Options{Queue: "queue", Scarcity: 0.5, Seed: 7}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		var ways []ec2types.FleetLaunchTemplateOverridesRequest
		for _, name := range []string{"m5.large", "m5a.large", "c5.large", "r5.large", "m5.xlarge", "c5.xlarge"} {
			ways = append(ways, w.way(name, zoneA), w.way(name, zoneB))
		}
		request := fleetOf(12, spotType, ways...)
		request.SpotOptions = &ec2types.SpotOptionsRequest{AllocationStrategy: "diversified"}
		out, err := w.ec2.CreateFleet(ctx, request)
		w.must(err)
		if len(out.Errors) == 0 || len(launched(out)) == 0 {
			t.Errorf("%d pools were empty, %d instances launched: want some of both", len(out.Errors), len(launched(out)))
		}
		w.pass(3 * epoch)
		taken := 0
		for _, i := range w.Instances() {
			if i.State != "running" {
				taken++
			}
		}
		if taken == 0 || taken == len(w.Instances()) {
			t.Errorf("%d of %d instances were reclaimed", taken, len(w.Instances()))
		}
	})
}

// Generated data depends only on the seed.
func TestSeed(t *testing.T) {
	pools := func(seed uint64) []Pool {
		var pools []Pool
		synctest.Test(t, func(t *testing.T) {
			c, err := New(Options{Seed: seed, Scarcity: 0.2})
			if err != nil {
				t.Fatal(err)
			}
			pools = c.Pools()
		})
		return pools
	}
	once, again, other := pools(1), pools(1), pools(2)
	if diff := cmp.Diff(once, again); diff != "" {
		t.Errorf("the same seed -once +again:\n%s", diff)
	}
	if slices.Equal(once, other) {
		t.Error("another seed results in the same pools")
	}
	dry := 0
	for _, p := range once {
		if p.Free == 0 && p.CapacityType == spot {
			dry++
		}
	}
	if share := float64(dry) / float64(len(once)) * 2; share < 0.15 || share > 0.25 {
		t.Errorf("%.2f of the spot pools are empty, want about 0.2", share)
	}
}

// The admin API has the same effects over HTTP as the methods.
func TestAdmin(t *testing.T) {
	in(t, Options{Queue: "queue"}, func(ctx context.Context, w *world) {
		client := w.cfg.HTTPClient.(*http.Client)
		do := func(method, path, body string) (int, string) {
			request, err := http.NewRequestWithContext(ctx, method, Endpoint+path, bytes.NewBufferString(body))
			w.must(err)
			answer, err := client.Do(request)
			w.must(err)
			defer func() { _ = answer.Body.Close() }()
			text, err := io.ReadAll(answer.Body)
			w.must(err)
			return answer.StatusCode, string(text)
		}
		if code, text := do("POST", "/_admin/drain", `{"instanceType":"m5.large","zone":"us-east-1a","left":0}`); code != 200 {
			t.Fatalf("drain: %d %s", code, text)
		}
		for _, p := range w.Pools("m5.large") {
			if (p.Free == 0) != (p.Zone == zoneA) {
				t.Errorf("pool %+v", p)
			}
		}
		do("POST", "/_admin/refill", `{}`)
		if code, text := do("GET", "/_admin/pools?instanceType=m5.large", ""); code != 200 || strings.Contains(text, `"free":0,`) {
			t.Errorf("pools after refill: %d %s", code, text)
		}
		if code, text := do("POST", "/_admin/fault",
			`{"kind":"fail","service":"ec2","code":"Unavailable"}`); code != 200 || !strings.Contains(text, `"fault":`) {
			t.Errorf("fault: %d %s", code, text)
		}
		_, err := w.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
		w.refused(err, "Unavailable")
		do("POST", "/_admin/clear", `{}`)
		id := w.spotInstance(ctx)
		if code, text := do("POST", "/_admin/interrupt", `{"ids":["`+id+`"]}`); code != 200 || w.Queued() != 3 {
			t.Errorf("interrupt: %d %s, %d messages", code, text, w.Queued())
		}
		if code, text := do("POST", "/_admin/release", `{"family":"al2023","version":"v20261120"}`); code != 200 || strings.Count(text,
			"ami-") != 5*len(kubernetesVersions) {
			t.Errorf("release: %d %s", code, text)
		}
		if _, text := do("GET", "/_admin/calls", ""); !strings.Contains(text,
			`{"service":"ec2","action":"DescribeSubnets","code":"Unavailable","count":1}`) {
			t.Errorf("calls: %s", text)
		}
		for _, bad := range [][2]string{{"/_admin/nothing", "{}"}, {"/_admin/interrupt", `{"id":"i-0"}`},
			{"/_admin/drain", `{"typo":1}`}, {"/_admin/schedule", `{"at":"soon"}`}} {
			if code, _ := do("POST", bad[0], bad[1]); code < 400 {
				t.Errorf("POST %s %s: %d", bad[0], bad[1], code)
			}
		}
	})
}

// Instance profiles follow IAM's rules.
func TestInstanceProfiles(t *testing.T) {
	in(t, Options{PageSize: 2}, func(ctx context.Context, w *world) {
		role, path := aws.String("KarpenterNodeRole-sandbox"), aws.String("/karpenter/us-east-1/sandbox/")
		for _, name := range []string{"a", "b", "c"} {
			_, err := w.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: path})
			w.must(err)
		}
		a := aws.String("a")
		_, err := w.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: a})
		w.refused(err, "EntityAlreadyExists")
		_, err = w.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: a, RoleName: aws.String("none")})
		w.refused(err, "NoSuchEntity")
		_, err = w.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: a, RoleName: role})
		w.must(err)
		_, err = w.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: a, RoleName: role})
		w.refused(err, "LimitExceeded")
		got, err := w.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: a})
		w.must(err)
		if *got.InstanceProfile.Roles[0].RoleName != *role || *got.InstanceProfile.Path != *path {
			t.Errorf("profile %+v", got.InstanceProfile)
		}
		_, err = w.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: a})
		w.refused(err, "DeleteConflict")
		_, err = w.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: a, RoleName: role})
		w.must(err)
		_, err = w.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: a})
		w.must(err)
		_, err = w.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: a})
		w.refused(err, "NoSuchEntity")
		w.AddRole("/team/", "d")
		d, err := w.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("d")})
		w.must(err)
		if *d.Role.Arn != "arn:aws:iam::111122223333:role/team/d" {
			t.Errorf("role %s", *d.Role.Arn)
		}
		for _, name := range []string{"d", "e"} {
			_, err := w.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: path})
			w.must(err)
		}
		var names []string
		for pages := iam.NewListInstanceProfilesPaginator(w.iam, &iam.ListInstanceProfilesInput{PathPrefix: path}); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			w.must(err)
			for _, p := range page.InstanceProfiles {
				names = append(names, *p.InstanceProfileName)
			}
		}
		if diff := cmp.Diff([]string{"b", "c", "d", "e"}, names); diff != "" {
			t.Errorf("profiles -want +got:\n%s", diff)
		}
	})
}
