package aws

import (
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// Requests are reported as a whole and attempt by attempt.
func TestWatch(t *testing.T) {
	w := newWorld(t, "m5.large")
	var mu sync.Mutex
	var requests, attempts []call.Request
	note := func(to *[]call.Request) func(call.Request) {
		return func(r call.Request) {
			mu.Lock()
			defer mu.Unlock()
			r.Took = 0
			*to = append(*to, r)
		}
	}
	client := ec2.New(w.clients.EC2.Options(), func(o *ec2.Options) {
		o.APIOptions = append(o.APIOptions, call.Watch(note(&requests), note(&attempts)))
	})
	_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: "DescribeSubnets", Count: 1})
	check(t, err)
	if _, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0"}}); err == nil {
		t.Fatal("a subnet that does not exist is described")
	}
	request := func(status, retries int) call.Request {
		return call.Request{Service: "EC2", Operation: "DescribeSubnets", Status: status, Retries: retries}
	}
	expected := func(what string, got []call.Request, want ...call.Request) {
		if len(got) != len(want) {
			t.Fatalf("%s: %+v, want %+v", what, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s %d: %+v, want %+v", what, i, got[i], want[i])
			}
		}
	}
	expected("requests", requests, request(http.StatusOK, 1), request(http.StatusBadRequest, 0))
	expected("attempts", attempts, request(http.StatusServiceUnavailable, 0), request(http.StatusOK, 0), request(http.StatusBadRequest, 0))
}
