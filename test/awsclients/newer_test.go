package awsclients

import (
	"os"
	"reflect"
	"strings"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// TestNewer finds each member of answers that boto3 of Debian does not know in the AWS SDK for Go, which is newer.
func TestNewer(t *testing.T) {
	structures := map[string]any{
		"CapacityReservation": ec2types.CapacityReservation{}, "CpuOptions": ec2types.CpuOptions{},
		"GpuDeviceInfo": ec2types.GpuDeviceInfo{}, "InferenceDeviceInfo": ec2types.InferenceDeviceInfo{},
		"InstanceIpv6Address":      ec2types.InstanceIpv6Address{},
		"InstanceNetworkInterface": ec2types.InstanceNetworkInterface{}, "InstanceStatus": ec2types.InstanceStatus{},
		"InstanceTypeInfo": ec2types.InstanceTypeInfo{}, "NetworkCardInfo": ec2types.NetworkCardInfo{}, "Placement": ec2types.Placement{},
		"ProcessorInfo": ec2types.ProcessorInfo{}, "SpotPrice": ec2types.SpotPrice{}, "VolumeStatusItem": ec2types.VolumeStatusItem{},
	}
	text, err := os.ReadFile("scripts/newer.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		structure, member, ok := strings.Cut(strings.TrimSpace(line), ".")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		of, known := structures[structure]
		if !known {
			t.Errorf("newer.txt: %s is no structure of this test", structure)
			continue
		}
		if _, ok := reflect.TypeOf(of).FieldByName(strings.ToUpper(member[:1]) + member[1:]); !ok {
			t.Errorf("newer.txt: the AWS SDK for Go has no member %s of %s either", member, structure)
		}
	}
}
