// node_calls.js ADDON N
const addon = require(process.argv[2]);
const n = Number(process.argv[3]);
const hot = (i) => addon.twice(i);
const picky = (i) => {
  if (i % 2 === 1) throw new Error('odd');
  return hot(i);
};
let sum = 0;
let thrown = 0;
for (let i = 0; i < n; ++i) sum += hot(i);
for (let i = 0; i < n; ++i) {
  try {
    addon.through(picky, i);
  } catch (error) {
    ++thrown;
  }
}
console.log(sum, thrown);
