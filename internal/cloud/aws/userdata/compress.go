package userdata

import (
	"bytes"
	"compress/gzip"
	"errors"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// mostCompressed is the maximum number of bytes that are compressed. Scripts become a third to a tenth as long, so that
// a longer text hardly fits, and each try takes processor time.
const mostCompressed = 16 * Limit

// compresses reports whether images of the family read compressed user data. cloud-init of both does, and so does
// nodeadm of AL2023
// (https://docs.cloud-init.io/en/latest/explanation/format/gzip.html,
// https://github.com/awslabs/amazon-eks-ami/tree/main/nodeadm/internal/configprovider).
func compresses(family awsv1.Family) bool {
	return family == awsv1.FamilyAL2 || family == awsv1.FamilyAL2023
}

// fitted returns the text, compressed if EC2 would not accept it otherwise. Text that EC2 accepts stays as it is: no
// launch template changes, and older images need not decompress. The same text has the same result, because the header
// has neither a name nor a time.
func fitted(family awsv1.Family, text []byte) []byte {
	if len(text) <= Limit || len(text) > mostCompressed || !compresses(family) {
		return text
	}
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, err := writer.Write(text)
	if err = errors.Join(err, writer.Close()); err != nil {
		panic("compressing user data: " + err.Error()) // writing to a buffer never fails
	}
	return out.Bytes()
}

// Near reports whether further labels of a pool may make the rendered user data of the family too long.
func Near(family awsv1.Family, data []byte) bool {
	return len(data) >= NearLimit && (!compresses(family) || bytes.HasPrefix(data, gzipMagic))
}

var gzipMagic = []byte{0x1f, 0x8b}
