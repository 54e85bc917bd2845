# A repository of 20 commits of 30 files each, packed, and cloned.
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
git init -q tree && cd tree && git config user.name someone && git config user.email someone@example.org &&
for commit in $(seq 20); do
    for file in $(seq 30); do
        seq $commit $((commit * file * 3 + 40)) > file$file.txt
    done
    git add . && git commit -q -m "commit $commit" || exit 1
done &&
git repack -q -a -d && cd .. && git clone -q tree copy
