// What TypeScript's compiler does not find by itself: promises that nobody awaits, assertions that say nothing, and
// the like.
import tseslint from "typescript-eslint";

export default tseslint.config(
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { project: "./tsconfig.json", tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Answers are JSON of a server or of an exported page. src/backend checks each value as it takes it over, and
      // test/unit/hostile.test.ts tries what it does with others.
      "@typescript-eslint/no-explicit-any": "off",
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-call": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
      // Methods of a Backend are async whether they wait or not: errors come as rejections.
      "@typescript-eslint/require-await": "off",
    },
  },
  { files: ["**/*.mjs"], ...tseslint.configs.disableTypeChecked },
);
